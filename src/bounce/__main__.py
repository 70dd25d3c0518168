"""Make `python -m bounce` the command `bounce`."""

from bounce.cli import main

if __name__ == "__main__":
    main()
