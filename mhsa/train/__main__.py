"""Train the recorded toy experiments of lessons 6 and 8 anew: one head against many. `python -m mhsa.train --help`."""

import argparse
import sys
from pathlib import Path

from mhsa.recording import check_writable
from mhsa.train.example import record_examples
from mhsa.train.record import RECORD, RECORDED, WEIGHTS, record


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m mhsa.train", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path(str(RECORDED)),
        help=f"where {RECORD} and {WEIGHTS} are written (default: mhsa/train/recorded)",
    )
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="seeds 0 to N-1 (default: 5)")
    parser.add_argument(
        "--steps",
        type=int,
        metavar="N",
        help="of Adam, for a trial (default: 300 to 3000, each sweep its own)",
    )
    args = parser.parse_args(arguments)
    steps = {} if args.steps is None else {"steps": args.steps}
    if min([args.seeds, *steps.values()]) < 1:
        parser.error("--seeds and --steps must be at least 1")

    if not args.folder.is_dir():
        parser.error(f"--folder {args.folder} is no folder")
    check_writable(args.folder / RECORD)
    try:
        record_examples(args.folder)
        record(args.folder, range(args.seeds), steps)
    except KeyboardInterrupt:
        sys.exit(f"Interrupted. {args.folder} holds what is finished, and keeps what was complete before.")


if __name__ == "__main__":
    main()
