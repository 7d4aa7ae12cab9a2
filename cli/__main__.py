"""The command line for those who start it by file: ``python -m cli``, and ``spark-submit``, which knows no commands."""

from cli.main import run

if __name__ == "__main__":
    run()
