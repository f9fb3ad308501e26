"""The command line: each command is a few lines that call a module."""

from __future__ import annotations

import argparse
import importlib
import io
import json
import sys
from collections.abc import Sequence

from lm_eval_bias import __version__
from lm_eval_bias.errors import BiasError, Parser, printable

# parsed by modules of their own in lm_eval_bias.commands, except run, which the harness's parser parses
_SEPARATE = {
    "run": "evaluate a model: the harness's run with all its flags",
    "compare": "is one model more biased than another, and is the difference real",
    "report": "a page (or Markdown, CSV, LaTeX, JSON) about runs, to be handed to someone",
    "leaderboard": "all runs of a folder beside the published models",
    "check": "hold a run's scores against the bounds of a policy; exit status 1 if one is violated",
    "train-nsp": "teach a causal or T5 model to tell whether a sentence follows another, for --model hf-nsp",
    "translate": "StereoSet in a new language: an engine translates, checks list what needs a person",
    "validate": "check a data set in StereoSet's form, and make tasks of it",
}
_EPILOG = """examples:
  lm-eval-bias ls
  lm-eval-bias run --tasks occugender,gg_bbq --model hf --model_args pretrained=gpt2
  lm-eval-bias rescore results/ --words pronouns
  lm_eval --include_path "$(lm-eval-bias path)" --tasks occugender --model hf ...
"""


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="lm-eval-bias",
        description="Published bias benchmarks for EleutherAI's lm-evaluation-harness.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"lm-eval-bias {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, purpose in _SEPARATE.items():
        commands.add_parser(name, help=purpose, add_help=False)

    ls = commands.add_parser("ls", help="list tasks and groups with what they measure")
    ls.add_argument("--json", action="store_true", help="machine-readable, with each score's range and neutral value")
    ls.add_argument("--suites", action="store_true", help="the suites of run --suite, with tasks, items and requests")

    commands.add_parser("path", help="print the task folder, for lm_eval --include_path")
    commands.add_parser("link", help="let plain 'lm_eval --tasks occugender' find the tasks")
    commands.add_parser("unlink", help="remove exactly what link wrote")
    doctor = commands.add_parser("doctor", help="check versions, link and data")
    doctor.add_argument("--json", action="store_true", help="machine-readable")

    fetch = commands.add_parser("fetch", help="download and verify the pinned data")
    fetch.add_argument("names", nargs="*", metavar="NAME", help="data sets or files (all without a name)")

    rescore = commands.add_parser("rescore", help="recompute every score from saved samples, without a model")
    rescore.add_argument(
        "paths", nargs="+", metavar="PATH", help="run folders, samples files (--log_samples) or predictions"
    )
    rescore.add_argument("--language", metavar="LANG", help="of StereoSet predictions or labelled texts: de, en, ...")
    rescore.add_argument(
        "--classifier", metavar="NAME", help="regard: classify the saved texts again: light, sbert, hub:<model>, ..."
    )
    rescore.add_argument("--json", action="store_true", help="machine-readable")
    rescore.add_argument("--words", metavar="SET", help="OccuGender: pronouns, appendix_a, authors_code or a YAML file")

    export = commands.add_parser("export", help="write a StereoSet run as the authors' prediction file")
    export.add_argument("paths", nargs="+", metavar="RUN", help="run folders or samples files (--log_samples)")
    export.add_argument("-o", "--output", required=True, metavar="FILE", help="where to; gzipped if it ends in .gz")
    export.add_argument("--language", metavar="LANG", help="which language, where the run has several")
    export.add_argument("--variant", metavar="NAME", help="which score of a stereoset_<language>_inter_variants run")
    train = commands.add_parser("train-regard", help="train a regard classifier's head, with its model card")
    train.add_argument(
        "--language", metavar="LANG", default="de", choices=["de", "en"], help="corpus: de (default), en"
    )
    train.add_argument("--encoder", metavar="MODEL", help="sentence-transformers model, a name or a folder")
    train.add_argument(
        "--embeddings",
        metavar="FILE",
        help="precomputed vectors (.npz: dev_X, dev_Y, test_X, test_Y); --encoder then says what made them",
    )
    train.add_argument("--light", action="store_true", help="evaluate the light classifier instead (nothing to save)")
    train.add_argument("--seeds", metavar="N", type=int, default=5, help="how many seeds (default 5)")
    train.add_argument(
        "--recipe",
        choices=["paper", "mixup"],
        default="paper",
        help="the paper's networks (default), or what did better on its development rows",
    )
    train.add_argument("-o", "--output", metavar="DIR", help="where to put head, card.json and README.md")

    classify = commands.add_parser("classify", help="label the regard of any texts (.txt, .csv, .jsonl)")
    classify.add_argument("file", metavar="FILE", help="one text a line, or a column of texts")
    classify.add_argument("--classifier", metavar="NAME", help="light, sbert, hub:<model>, head:<folder>")
    classify.add_argument("--language", metavar="LANG", choices=["de", "en"], help="de or en; found by the subjects")
    classify.add_argument("--column", metavar="NAME", default="text", help="column or field of the text (default text)")
    classify.add_argument("-o", "--output", metavar="FILE", help=".jsonl or .csv (default: JSONL to standard output)")

    plot = commands.add_parser("plot", help="figures of regard and sexism facets, as PNG and SVG")
    plot.add_argument("paths", nargs="+", metavar="RESULTS", help="what rescore takes: run folders, labelled texts")
    plot.add_argument("-o", "--output", metavar="DIR", default=".", help="folder for the figures (default: here)")
    plot.add_argument("--language", metavar="LANG", help="of labelled texts: de or en")
    plot.add_argument("--classifier", metavar="NAME", help="classify the texts again")
    return parser


def _ls(args: argparse.Namespace) -> int:
    from lm_eval_bias import catalog

    if args.suites:
        from lm_eval_bias.evaluation import suites

        print(suites.as_text() if not args.json else json.dumps(suites.listing(), indent=2))
        return 0
    if args.json:
        print(json.dumps(catalog.listing(), indent=2, ensure_ascii=False))
        return 0
    from tabulate import tabulate

    rows = [[e.name, e.kind, e.benchmark, e.language, f"{e.items:,}", e.measures] for e in catalog.entries().values()]
    headers = ["Name", "Kind", "Benchmark", "Lang", "Items", "Measures"]
    print(
        tabulate(rows, headers=headers, tablefmt="simple", colalign=("left", "left", "left", "left", "right", "left"))
    )
    for benchmark in dict.fromkeys(e.benchmark for e in catalog.entries().values()):
        scores = [
            [s.name, catalog.format_range(s), catalog.format_number(s.neutral), s.direction]
            for s in catalog.headline(benchmark)
        ]
        print(f"\nScores of {benchmark}")
        print(tabulate(scores, headers=["Score", "Range", "Neutral", "Reads as"], tablefmt="simple"))
    return 0


def _path(args: argparse.Namespace) -> int:
    from lm_eval_bias.paths import tasks_path

    print(tasks_path())
    return 0


def _link(args: argparse.Namespace) -> int:
    from lm_eval_bias.harness import linking

    if linking.unnecessary():
        print("Nothing to link: this harness reads entry points, and 'lm_eval --tasks occugender' works as it is.")
        return 0
    found = linking.link()
    print(f"{len(found.stubs)} stubs written to {found.folder}; 'lm_eval --tasks occugender' works now.")
    return 0


def _unlink(args: argparse.Namespace) -> int:
    from lm_eval_bias.harness import linking

    removed, changed = linking.unlink()
    for path in changed:
        print(f"left as it is, changed since link: {path}", file=sys.stderr)
    print(f"{removed} stubs removed." if removed or changed else "Nothing was linked.")
    return 2 if changed else 0


def _doctor(args: argparse.Namespace) -> int:
    from lm_eval_bias import installation as doctor

    findings = doctor.examine()
    if args.json:
        print(json.dumps([vars(f) for f in findings], indent=2, ensure_ascii=False))
    else:
        for finding in findings:
            print(f"{finding.status:8} {finding.text}")
    return 1 if any(f.status == "problem" for f in findings) else 0


def _fetch(args: argparse.Namespace) -> int:
    from lm_eval_bias.data.download import fetch

    for source, path in fetch(args.names):
        print(f"{source.name}: {source.size:,} bytes, SHA-256 verified, {source.licence}\n  {path}")
    return 0


def _rescore(args: argparse.Namespace) -> int:
    from lm_eval_bias.runs import rescoring

    results = rescoring.rescore(args.paths, words=args.words, language=args.language, classifier=args.classifier)
    print(rescoring.as_json(results) if args.json else rescoring.as_table(results))
    return 0


def _export(args: argparse.Namespace) -> int:
    from lm_eval_bias.files import expanded
    from lm_eval_bias.runs import saved_answers
    from lm_eval_bias.tasks.stereoset import predictions

    logs = saved_answers.read(args.paths, readers=saved_answers.READERS[:1])
    found = predictions.collect(logs, args.variant, args.language)
    predictions.write(expanded(args.output), found)
    counts = ", ".join(f"{len(scores):,} candidates of {name}" for name, scores in found.items())
    print(f"{args.output}: {counts}")
    return 0


def _train_regard(args: argparse.Namespace) -> int:
    from lm_eval_bias.tasks.regard import commands as command

    return command.train(args.language, args.encoder, args.embeddings, args.light, args.seeds, args.recipe, args.output)


def _classify(args: argparse.Namespace) -> int:
    from lm_eval_bias.tasks.regard import commands as command

    return command.classify(args.file, args.classifier, args.language, args.column, args.output)


def _plot(args: argparse.Namespace) -> int:
    from lm_eval_bias.runs import rescoring
    from lm_eval_bias.tasks.regard import plots

    for path in plots.write(
        rescoring.rescore(args.paths, language=args.language, classifier=args.classifier, only="regard"), args.output
    ):
        print(path)
    return 0


_COMMANDS = {
    "ls": _ls,
    "path": _path,
    "link": _link,
    "unlink": _unlink,
    "doctor": _doctor,
    "fetch": _fetch,
    "rescore": _rescore,
    "export": _export,
    "train-regard": _train_regard,
    "classify": _classify,
    "plot": _plot,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status (2 for bad usage, input or data, with one line on standard error)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names of files can be any bytes, as in error messages
    try:
        if arguments and arguments[0] in _SEPARATE:
            command = importlib.import_module(f"lm_eval_bias.cli.{arguments[0].replace('-', '_')}")
            return int(command.main(arguments[1:]))
        args = _parser().parse_args(arguments)
        return _COMMANDS[args.command](args)
    except BiasError as error:
        _say(f"error: {printable(error)}")
        return 2
    except RecursionError:
        _say("error: the input is nested too deeply to be read")
        return 2
    except MemoryError:
        _say("error: not enough memory for this input")
        return 2
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        _say("interrupted")
        return 130


def _say(message: str) -> None:
    """Print a line of its own: progress bars that were under way end theirs first."""
    if "tqdm" in sys.modules:
        bars = getattr(sys.modules["tqdm"].tqdm, "_instances", ())
        for bar in list(bars):
            bar.close()
    print(f"lm-eval-bias: {message}", file=sys.stderr)
