/* A calculator: a scanner, a compiler to a stack machine, the machine, and a few routines to call. */
#include <stddef.h>
#include <stdint.h>

enum { PUSH, ADD, SUB, MUL, DIV, MOD, NEG, LOAD, STORE, JUMP, JUMPZ, LESS, EQUAL, CALL, DUP, DROP, STOP };
enum { CODE = 512, STACK = 64, NAMES = 26 };

typedef struct {
    int32_t code[CODE];
    int length;
    const char *at;
    int error;
} Program;

typedef struct {
    int64_t stack[STACK];
    int64_t names[NAMES];
    int top;
} Machine;

static void emit(Program *p, int32_t word)
{
    if (p->length < CODE)
        p->code[p->length++] = word;
    else
        p->error = 1;
}

static int peek(Program *p)
{
    while (*p->at == ' ')
        p->at++;
    return *p->at;
}

static int take(Program *p, int wanted)
{
    if (peek(p) != wanted)
        return 0;
    p->at++;
    return 1;
}

static void sum(Program *p);

static void atom(Program *p)
{
    int c = peek(p);
    if (c >= '0' && c <= '9') {
        int32_t value = 0;
        while (*p->at >= '0' && *p->at <= '9')
            value = value * 10 + (*p->at++ - '0');
        emit(p, PUSH);
        emit(p, value);
    } else if (c >= 'a' && c <= 'z') {
        p->at++;
        emit(p, LOAD);
        emit(p, c - 'a');
    } else if (c >= 'A' && c <= 'D') {
        p->at++;
        atom(p);
        emit(p, CALL);
        emit(p, c - 'A');
    } else if (take(p, '-')) {
        atom(p);
        emit(p, NEG);
    } else if (take(p, '(')) {
        sum(p);
        if (!take(p, ')'))
            p->error = 2;
    } else {
        p->error = 3;
    }
}

static void product(Program *p)
{
    atom(p);
    for (;;) {
        if (take(p, '*')) {
            atom(p);
            emit(p, MUL);
        } else if (take(p, '/')) {
            atom(p);
            emit(p, DIV);
        } else if (take(p, '%')) {
            atom(p);
            emit(p, MOD);
        } else {
            return;
        }
    }
}

static void sum(Program *p)
{
    product(p);
    for (;;) {
        if (take(p, '+')) {
            product(p);
            emit(p, ADD);
        } else if (take(p, '-')) {
            product(p);
            emit(p, SUB);
        } else if (take(p, '<')) {
            product(p);
            emit(p, LESS);
        } else if (take(p, '=')) {
            product(p);
            emit(p, EQUAL);
        } else {
            return;
        }
    }
}

int translate(Program *p, const char *text)
{
    p->length = p->error = 0;
    p->at = text;
    while (peek(p) && !p->error) {
        sum(p);
        if (take(p, '>') && peek(p) >= 'a' && peek(p) <= 'z') {
            emit(p, STORE);
            emit(p, *p->at++ - 'a');
        }
        if (!take(p, ';'))
            break;
    }
    emit(p, STOP);
    return p->error;
}

static int64_t root(int64_t x)
{
    int64_t r = x;
    if (x < 2)
        return x;
    for (int i = 0; i < 64 && r > x / r; i++)
        r = (r + x / r) / 2;
    return r;
}

static int64_t fibonacci(int64_t n)
{
    int64_t a = 0, b = 1;
    while (n-- > 0) {
        int64_t t = a + b;
        a = b;
        b = t;
    }
    return a;
}

static int64_t primes(int64_t n)
{
    unsigned char sieve[1024];
    int64_t count = 0;
    if (n > 1024)
        n = 1024;
    for (int64_t i = 0; i < n; i++)
        sieve[i] = 1;
    for (int64_t i = 2; i < n; i++)
        if (sieve[i]) {
            count++;
            for (int64_t j = i * i; j < n; j += i)
                sieve[j] = 0;
        }
    return count;
}

static int64_t bits(int64_t x)
{
    int64_t count = 0;
    for (uint64_t u = (uint64_t)x; u; u &= u - 1)
        count++;
    return count;
}

static int64_t (*const routines[4])(int64_t) = {root, fibonacci, primes, bits};

int execute(Machine *m, const Program *p)
{
    int at = 0;
    m->top = 0;
    for (int steps = 0; steps < 100000 && at < p->length; steps++) {
        int64_t *s = m->stack + m->top;
        if (m->top >= STACK - 1)
            return 4;
        switch (p->code[at++]) {
        case PUSH: *s = p->code[at++]; m->top++; break;
        case ADD: s[-2] += s[-1]; m->top--; break;
        case SUB: s[-2] -= s[-1]; m->top--; break;
        case MUL: s[-2] *= s[-1]; m->top--; break;
        case DIV:
            if (s[-1] == 0)
                return 5;
            s[-2] /= s[-1];
            m->top--;
            break;
        case MOD:
            if (s[-1] == 0)
                return 5;
            s[-2] %= s[-1];
            m->top--;
            break;
        case NEG: s[-1] = -s[-1]; break;
        case LOAD: *s = m->names[p->code[at++]]; m->top++; break;
        case STORE: m->names[p->code[at++]] = s[-1]; m->top--; break;
        case JUMP: at = p->code[at]; break;
        case JUMPZ: at = s[-1] ? at + 1 : p->code[at]; m->top--; break;
        case LESS: s[-2] = s[-2] < s[-1]; m->top--; break;
        case EQUAL: s[-2] = s[-2] == s[-1]; m->top--; break;
        case CALL: s[-1] = routines[p->code[at++] & 3](s[-1]); break;
        case DUP: *s = s[-1]; m->top++; break;
        case DROP: m->top--; break;
        case STOP: return 0;
        }
    }
    return 6;
}

size_t show(char *out, int64_t value)
{
    char digits[24];
    size_t n = 0, written = 0;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do
        digits[n++] = (char)('0' + rest % 10);
    while (rest /= 10);
    if (value < 0)
        out[written++] = '-';
    while (n)
        out[written++] = digits[--n];
    out[written] = 0;
    return written;
}
