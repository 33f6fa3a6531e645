"""The command `strongticket`, also as `python -m strongticket`."""

import sys


def main() -> None:
    """Run the command line; Ctrl-C is quiet even while Python still imports it."""
    try:
        from strongticket.cli import main as run

        run()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
