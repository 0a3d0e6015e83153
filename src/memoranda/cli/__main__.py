"""Run the command line as `python -m memoranda.cli`."""

from memoranda.cli import main

if __name__ == "__main__":
    main()
