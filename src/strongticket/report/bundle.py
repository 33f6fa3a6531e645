"""The JavaScript of web/ as one script: pages opened from disk cannot import modules.

The modules are written so that this is simple: imports and exports by name, each statement at the start of a line.
"""

import re
from pathlib import Path

from strongticket.errors import StrongTicketError

_FROM = re.compile(r'^(import|export) \{([^}]*)\} from "([^"]+)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?function\*?|class|const) (\w+)", re.MULTILINE)


def web_folder() -> Path:
    """Return the folder of the modules: beside this file in an installed package, web/ in a clone."""
    installed = Path(__file__).parent / "web"
    return installed if installed.is_dir() else Path(__file__).parents[3] / "web"


def bundle(entry: Path) -> str:
    """Join a module and all that it imports into one script; the entry's exports stay inside."""
    modules: dict[Path, str] = {}
    _add(entry.resolve(), modules, ())
    return '"use strict";\n' + "\n".join(modules.values())


def _add(path: Path, modules: dict[Path, str], importers: tuple[Path, ...]) -> None:
    """Put the module's text after those of its imports."""
    if path in modules:
        return
    if path in importers:
        raise StrongTicketError(f"{path.name} imports itself through {importers[-1].name}")
    text = path.read_text(encoding="utf-8")
    exports: list[str] = []

    def rewrite(match: re.Match[str]) -> str:
        statement, names, source = match.groups()
        imported = (path.parent / source).resolve()
        _add(imported, modules, (*importers, path))
        if statement == "export":
            exports.extend(name.strip() for name in names.split(",") if name.strip())
        return f"const {{{names}}} = {_variable(imported, modules)};"

    text = _FROM.sub(rewrite, text)
    exports += [name for _, name in _EXPORT.findall(text)]
    body = _EXPORT.sub(r"\1 \2", text)
    modules[path] = ""  # it has its number before its text, which names it
    name = _variable(path, modules)
    modules[path] = (
        f"const {name} = (() => {{ // {path.name}\n{body}return {{ {', '.join(exports)} }};\n}})();\n"
    )


def _variable(path: Path, modules: dict[Path, str]) -> str:
    """A module's name in the script; names of files may repeat, numbers do not."""
    return f"module{list(modules).index(path)}"
