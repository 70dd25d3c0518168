/* Small routines of many kinds: hashing, matrices, strings, sorting, searching. Its size is what is optimised. */
#include <stddef.h>
#include <stdint.h>

#define SIDE 24

static uint32_t table[256];

static void fill_table(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int bit = 0; bit < 8; bit++)
            c = c & 1 ? 0xedb88320u ^ (c >> 1) : c >> 1;
        table[i] = c;
    }
}

uint32_t checksum(const unsigned char *bytes, size_t n)
{
    uint32_t c = 0xffffffffu;
    if (table[1] == 0)
        fill_table();
    while (n--)
        c = table[(c ^ *bytes++) & 255] ^ (c >> 8);
    return ~c;
}

static uint64_t rotate(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

uint64_t scramble(const uint64_t *words, size_t n, uint64_t key)
{
    uint64_t a = key, b = ~key, c = key * 0x9e3779b97f4a7c15ull;
    for (size_t i = 0; i < n; i++) {
        a += words[i];
        b ^= rotate(a, 13);
        c = rotate(c + b, 31) * 5;
        switch (words[i] & 7) {
        case 0: a ^= c; break;
        case 1: b += a >> 3; break;
        case 2: c -= b; break;
        case 3: a = rotate(a, 7); break;
        case 5: b = ~b; break;
        default: c ^= a + i; break;
        }
    }
    return a ^ rotate(b, 17) ^ rotate(c, 45);
}

void multiply(double out[SIDE][SIDE], const double x[SIDE][SIDE], const double y[SIDE][SIDE])
{
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) {
            double sum = 0.0;
            for (int k = 0; k < SIDE; k++)
                sum += x[i][k] * y[k][j];
            out[i][j] = sum;
        }
}

int decompose(double a[SIDE][SIDE])
{
    for (int k = 0; k < SIDE; k++) {
        if (a[k][k] < 1e-12 && a[k][k] > -1e-12)
            return k + 1;
        for (int i = k + 1; i < SIDE; i++) {
            a[i][k] /= a[k][k];
            for (int j = k + 1; j < SIDE; j++)
                a[i][j] -= a[i][k] * a[k][j];
        }
    }
    return 0;
}

void smooth(float *out, const float *in, int n, int width)
{
    for (int i = 0; i < n; i++) {
        float sum = 0.0f;
        int count = 0;
        for (int j = i - width; j <= i + width; j++)
            if (j >= 0 && j < n) {
                sum += in[j];
                count++;
            }
        out[i] = count ? sum / (float)count : 0.0f;
    }
}

static int is_space(int c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static int lower(int c)
{
    return c >= 'A' && c <= 'Z' ? c + 32 : c;
}

size_t words_of(const char *text, size_t counts[27])
{
    size_t words = 0;
    int inside = 0;
    for (size_t i = 0; i < 27; i++)
        counts[i] = 0;
    for (; *text; text++) {
        int c = lower(*text);
        if (is_space(c)) {
            inside = 0;
            continue;
        }
        if (!inside) {
            inside = 1;
            words++;
        }
        counts[c >= 'a' && c <= 'z' ? c - 'a' : 26]++;
    }
    return words;
}

int compare(const char *a, const char *b)
{
    while (*a && lower(*a) == lower(*b))
        a++, b++;
    return lower(*a) - lower(*b);
}

const char *find(const char *text, const char *part)
{
    for (; *text; text++) {
        const char *t = text, *p = part;
        while (*p && *t == *p)
            t++, p++;
        if (!*p)
            return text;
    }
    return NULL;
}

int parse(const char *text, long *out)
{
    long value = 0;
    int sign = 1;
    while (is_space(*text))
        text++;
    if (*text == '-' || *text == '+')
        sign = *text++ == '-' ? -1 : 1;
    if (*text < '0' || *text > '9')
        return -1;
    for (; *text >= '0' && *text <= '9'; text++) {
        if (value > 100000000)
            return -2;
        value = value * 10 + (*text - '0');
    }
    *out = sign * value;
    return *text ? 1 : 0;
}

static void swap(int *a, int *b)
{
    int t = *a;
    *a = *b;
    *b = t;
}

static void insertion(int *a, int n)
{
    for (int i = 1; i < n; i++)
        for (int j = i; j > 0 && a[j] < a[j - 1]; j--)
            swap(a + j, a + j - 1);
}

void quick(int *a, int n)
{
    while (n > 12) {
        int pivot = a[n / 2], i = 0, j = n - 1;
        while (i <= j) {
            while (a[i] < pivot)
                i++;
            while (a[j] > pivot)
                j--;
            if (i <= j)
                swap(a + i++, a + j--);
        }
        quick(a, j + 1);
        a += i;
        n -= i;
    }
    insertion(a, n);
}

void heap(int *a, int n)
{
    for (int end = n, start = n / 2; end > 1;) {
        if (start > 0)
            start--;
        else
            swap(a, a + --end);
        for (int root = start; 2 * root + 1 < end;) {
            int child = 2 * root + 1;
            if (child + 1 < end && a[child] < a[child + 1])
                child++;
            if (a[root] >= a[child])
                break;
            swap(a + root, a + child);
            root = child;
        }
    }
}

int search(const int *a, int n, int wanted)
{
    int low = 0, high = n;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (a[middle] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && a[low] == wanted ? low : -1;
}
