"""`python -m strongticket` is the command `strongticket`, for where the script is not on the PATH."""

from strongticket.cli import main

if __name__ == "__main__":
    main()
