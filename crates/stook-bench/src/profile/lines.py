"""Runs a Python program with one of its functions timed line by line, and writes what was found as JSON.

Called as `python3 -c DRIVER MODULE:FUNCTION RESULT script|module|code TARGET ARGUMENT...`. The function is found in the
syntax tree and gets line_profiler as its innermost decorator when its module is loaded: so nothing is imported
earlier than the program does it, and every reference to the function is to the timed one.
"""

import ast
import json
import linecache
import os
import sys
import types


def give(result):
    with open(result_path, "w", encoding="utf-8") as file:
        json.dump(result, file)


def wrong(kind, **facts):
    """Ends the program: what was asked for cannot be found."""
    give({"wrong": kind, **facts})
    os._exit(1)


wanted, result_path, how, target, *arguments = sys.argv[1:]
wanted_module, _, wanted_name = wanted.partition(":")
try:
    from line_profiler import LineProfiler
except ImportError as error:
    wrong("line_profiler", why=str(error))
profiler = LineProfiler()
process = os.getpid()
was_found = False
MARK = "__stook_timed__"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def functions(body, outer=""):
    """Yields functions with their names, those of classes as `Class.method`, also below `if` and `try`."""
    for node in body:
        if isinstance(node, FUNCTIONS):
            yield outer + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from functions(node.body, outer + node.name + ".")
        else:
            for field in ("body", "orelse", "finalbody", "handlers"):
                yield from functions(getattr(node, field, []), outer)


def timed(source, path):
    """Compiles a module with the function timed."""
    global was_found
    tree = ast.parse(source, path)
    named = list(functions(tree.body))
    for name, node in named:
        if name == wanted_name:
            was_found = True
            mark = ast.copy_location(ast.Name(id=MARK, ctx=ast.Load()), node)
            mark.end_lineno, mark.end_col_offset = mark.lineno, mark.col_offset
            node.decorator_list.append(mark)
    if not was_found:
        wrong("function", names=sorted({name for name, _ in named}))
    return compile(tree, path, "exec", dont_inherit=True)


class Loader:
    """Loads the module that the function is in."""

    def __init__(self, loader):
        self._loader = loader

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        source = self._loader.get_source(module.__name__)
        setattr(module, MARK, profiler)
        exec(timed(source, module.__spec__.origin), module.__dict__)


class Finder:
    """Finds the module that the function is in, by asking all others."""

    def find_spec(self, name, path=None, target=None):
        if name != wanted_module:
            return None
        others = (finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec"))
        for finder in others:
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                get_source = getattr(spec.loader, "get_source", None)
                if get_source is None or get_source(name) is None:
                    wrong("source")
                spec.loader = Loader(spec.loader)
                return spec
        return None


def time_loaded(module):
    """Times a function of a module that is loaded already, such as one that line_profiler itself uses."""
    global was_found
    *outer, name = wanted_name.split(".")
    owner = module
    for part in outer:
        owner = getattr(owner, part, None)
    found = vars(owner).get(name) if owner is not None else None
    if isinstance(found, (staticmethod, classmethod)):
        setattr(owner, name, type(found)(profiler(found.__func__)))
    elif isinstance(found, types.FunctionType):
        setattr(owner, name, profiler(found))
    elif found is not None:
        wrong("source")
    else:
        wrong("function", names=sorted(n for n, f in vars(module).items() if isinstance(f, types.FunctionType)))
    was_found = True


def program():
    """Returns the source of what is run, its path, and its module, set up as Python itself does it."""
    module = types.ModuleType("__main__")
    if how == "code":
        # A name of its own, by which the lines are found again.
        path = "<string>"
        linecache.cache[path] = (len(target), None, target.splitlines(True), path)
        sys.argv[:] = ["-c", *arguments]
        return target, path, module
    if how == "module":
        import importlib.util

        sys.path[0] = os.getcwd()
        spec = importlib.util.find_spec(target)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(target + ".__main__")
        source = None if spec is None else spec.loader.get_source(spec.name)
        if source is None:
            sys.exit(f"No module named {target} that can be run")
        module.__spec__, module.__package__ = spec, spec.parent
        path = spec.origin
    else:
        import tokenize

        path = target
        sys.path[0] = os.path.dirname(os.path.realpath(path))
        try:
            with tokenize.open(path) as file:
                source = file.read()
        except OSError as error:
            sys.exit(f"cannot open {path}: {error.strerror}")
    module.__file__ = path
    sys.argv[:] = [path, *arguments]
    return source, path, module


def table(stats):
    """Returns the functions that were timed, each with its lines."""
    tables = []
    for (path, first, name), timings in sorted(stats.timings.items()):
        figures = {}
        for line, hits, time in timings:
            before = figures.get(line, (0, 0))
            figures[line] = (before[0] + hits, before[1] + time)
        lines = []
        for number in sorted({*range(first, max(figures, default=first) + 1), *figures}):
            hits, time = figures.get(number, (0, 0))
            source = linecache.getline(path, number).rstrip()
            lines.append({"line": number, "hits": hits, "microseconds": time * stats.unit * 1e6, "source": source})
        tables.append({"function": name, "file": path, "lines": lines})
    return tables


def finish():
    if os.getpid() != process:
        return
    tables = table(profiler.get_stats())
    if not was_found:
        give({"wrong": "import"})
    elif not any(line["hits"] for function in tables for line in function["lines"]):
        give({"wrong": "call"})
    else:
        give({"functions": tables})


def run():
    source, path, module = program()
    if wanted_module == "__main__":
        setattr(module, MARK, profiler)
        code = timed(source, path)
    else:
        code = compile(source, path, "exec", dont_inherit=True)
        loaded = sys.modules.get(wanted_module)
        if loaded is not None:
            time_loaded(loaded)
        sys.meta_path.insert(0, Finder())
    sys.modules["__main__"] = module
    try:
        exec(code, module.__dict__)
    finally:
        finish()


run()
