import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from strongticket import __version__
from strongticket.cli import app, frame
from strongticket.errors import StrongTicketError

RUN = CliRunner()
HEAVY = ["torch", "numba", "matplotlib", "plotly", "scipy", "transformers", "numpy"]


def strongticket(*arguments, **options):
    command = [Path(sys.executable).with_name("strongticket"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)


def test_version_and_help_as_a_user_sees_them():
    as_module = subprocess.run([sys.executable, "-m", "strongticket", "--version"], stdout=subprocess.PIPE)
    assert strongticket("--version").stdout == as_module.stdout.decode() == f"strongticket {__version__}\n"
    help_text = strongticket("--help").stdout
    assert "report" in help_text
    assert strongticket().stdout.split() == help_text.split()


@pytest.mark.parametrize(
    ("arguments", "needed"),
    [
        (["--help"], []),
        (["plan", "--epsilon", "0.01", "--dim", "8"], ["numpy"]),
        (["show", str(Path(__file__).parents[1] / "known.ticket")], ["numpy"]),
    ],
)
def test_quick_commands_import_nothing_heavy(arguments, needed):
    code = (
        f"import sys\nfrom strongticket.cli import app\n"
        f"try: app({arguments})\nexcept SystemExit: pass\n"
        f"print('HEAVY', [m for m in {HEAVY} if m in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.endswith(f"HEAVY {needed}\n")


def test_every_command_has_json_help_and_an_example():
    names = [command.name for command in app.registered_commands]
    assert names
    for name in names:
        answer = RUN.invoke(app, [name, "--help"], terminal_width=100)
        assert answer.exit_code == 0
        assert "--json" in answer.stdout
        assert f"Example: strongticket {name}" in answer.stdout


def a_command_that(action):
    other = typer.Typer(cls=frame.Group)
    other.command("run")(action)
    other.callback()(lambda: None)
    return RUN.invoke(other, ["run"])


def failing(error):
    def action():
        raise error

    return a_command_that(action)


def test_help_starts_with_the_demo_and_has_no_braces():
    listed = RUN.invoke(app, ["--help"]).stdout.split("Commands:\n")[1]
    assert listed.split()[0] == "demo"
    assert "show [OPTIONS] F.ticket\n" in RUN.invoke(app, ["show", "--help"]).stdout
    assert "  algorithms " in RUN.invoke(app, ["reproduce", "--help"]).stdout


def test_common_options_come_before_the_groups_of_others():
    shown = RUN.invoke(app, ["build", "--help"]).stdout
    places = [shown.index(word) for word in ("\nOptions:", "--epsilon", "\nHugging Face models:", "--bits")]
    places += [shown.index(word) for word in ("\nAdvanced:", "--assignment")]
    assert places == sorted(places)
    assert "For models: " not in shown.split("\nAdvanced:")[0]


def test_text_is_printed_as_it_is():
    """No markup, no emoji codes, no control characters, in tables and outside of them."""
    odd, printed = "[bold]a[/x] :skull: \x1b[31m\u202e", r"[bold]a[/x] :skull: \x1b[31m\u202e"

    def action():
        cells = frame.table(odd, odd, "")
        cells.add_row(odd, "b")
        frame.emit({}, as_json=False, show=lambda: [cells, odd])

    lines = a_command_that(action).stdout.splitlines()
    assert [line.removesuffix("b").strip() for line in lines] == [printed] * 3 + ["", printed]


def test_json_has_null_for_what_it_cannot_hold():
    inf = float("inf")
    answer = a_command_that(
        lambda: frame.emit({"a": [inf, (1.5, -inf)], "b": {"c": float("nan")}}, as_json=True, show=list)
    )
    assert json.loads(answer.stdout) == {"a": [None, [1.5, None]], "b": {"c": None}}


def test_errors_are_one_line_what_and_one_line_what_to_do():
    answer = failing(StrongTicketError("width=[3] [bold] is too small.", hint="Use at least 8."))
    assert (answer.exit_code, answer.stdout) == (1, "")
    assert answer.stderr == "error: width=[3] [bold] is too small.\n hint: Use at least 8.\n"


def test_file_errors_name_the_file():
    answer = failing(PermissionError(13, "Permission denied", "/some/file"))
    assert answer.exit_code == 1
    assert answer.stderr.startswith("error: /some/file: Permission denied.\n hint: ")


def test_a_real_interrupt_while_working(tmp_path):
    script = tmp_path / "slow.py"
    script.write_text(
        "import signal, time, typer\nfrom strongticket.cli import frame\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a background job starts with it ignored
        "app = typer.Typer(cls=frame.Group)\napp.callback()(lambda: None)\n"
        "@app.command()\ndef run():\n    with frame.step('working'):\n"
        "        print('go', flush=True)\n        time.sleep(60)\n"
        "app(['run'])\n"
    )
    process = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "go\n"
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, "", "interrupted\n")


@pytest.mark.parametrize("more", ["", frame.SAME_COMMAND])
def test_an_interrupted_step_says_how_to_go_on(more):
    def action():
        with frame.step("working", if_interrupted=more):
            raise KeyboardInterrupt

    answer = a_command_that(action)
    assert (answer.exit_code, answer.stderr) == (130, f"interrupted{': ' * bool(more)}{more}\n")


def test_a_log_shows_progress_now_and_then(monkeypatch):
    monkeypatch.setattr(frame, "LOG_EVERY", 0.0)

    def action():
        with frame.step("counting") as advance:
            advance(1, 4)
            advance(2, 4, "[/x]")

    lines = a_command_that(action).stderr.splitlines()
    assert lines[0].startswith("counting: 1 of 4 (25%), 0.0 s")
    assert lines[1].startswith("counting: 2 of 4 (50%), 0.0 s, [/x]")


def test_json_is_alone_on_stdout_and_messages_go_to_stderr():
    def action():
        with frame.step("counting") as advance:
            advance(1, 2)
        frame.emit({"a": 1, "µ": [2.5]}, as_json=True, show=lambda: ["never"])

    answer = a_command_that(action)
    assert json.loads(answer.stdout) == {"a": 1, "µ": [2.5]}
    assert answer.stderr.startswith("✓ counting 0.0 s")


def test_a_step_that_fails_is_not_ticked_off():
    def action():
        with frame.step("counting"):
            raise StrongTicketError("no")

    assert "✓" not in a_command_that(action).stderr


def test_sizes_and_durations_for_people():
    sizes = {812: "812 B", 12_400: "12.4 kB", 3.1e6: "3.1 MB", 2e15: "2000.0 TB"}
    assert [frame.size(count) for count in sizes] == list(sizes.values())
    durations = {0.21: "0.2 s", 45: "45 s", 720: "12 min", 12_240: "3.4 h", 6.2e6: "72 days"}
    assert [frame.duration(seconds) for seconds in durations] == list(durations.values())
