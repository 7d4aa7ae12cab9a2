"""The command line for those who start it by module or file: ``python -m quarterdeck``, and ``spark-submit``."""

from quarterdeck.cli.main import run

if __name__ == "__main__":
    run()
