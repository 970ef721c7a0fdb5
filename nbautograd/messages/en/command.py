"""English sentences of the subject ``command``."""

TEXTS: dict[str, str] = {
    "command.help": "See what a torch.autograd.Function does, and why its backward is wrong, in the notebook.",
    "command.help.more": "`nbautograd COMMAND --help` says more about one command.",
    "command.help.lab": "open JupyterLab on a copy of the demo notebook",
    "command.help.lab.more": "The copy is yours: a second `nbautograd lab` opens it as you left it.",
    "command.help.folder": "where your copy of the demo lives (default: the current folder)",
    "command.help.lang": "language of the demo and of its reports (default: that of your system)",
    "command.help.port": "port of the server (default: the first free one from 8888)",
    "command.help.no_browser": "print the address instead of opening a browser",
    "command.help.headless": "open nothing: run the demo and write what it shows as one HTML page beside it",
    "command.help.doctor": "say whether everything that nbautograd needs is here and fits together",
    "command.interrupted": "nbautograd: stopped.",
    "command.copied": "Your copy of the demo: {path}",
    "command.kept": "Your copy of the demo is already there, and stays as you left it: {path}",
    "command.opening": "Opening JupyterLab. Press Ctrl-C here to stop it.",
    "command.page": "The demo ran; what it shows is in {path}",
    "command.missing": "this needs {module}, which is not installed in this Python. Install it with\n"
    '    {python} -m pip install "nbautograd[lab]"',
    "command.port": "port {port} cannot be used ({reason}). Name another one, or leave --port out and the first free "
    "port is taken.",
    "command.folder": "cannot write into {folder} ({reason}). Name a folder of yours with --folder.",
    "command.no_notebook": "the notebook {name} is not where it should be, in or beside {package}. The installation "
    "is incomplete: install nbautograd again.",
    "command.no_json": "{path} is not a notebook that can be read ({reason}). Move it aside and a fresh copy is made.",
    "command.page_taken": "{path} exists and was not written by nbautograd, so it is left alone. Move it aside, or "
    "name another folder with --folder.",
    "command.cell_failed": "a cell of the demo failed: {reason}. The page shows which one: {path}",
    "command.help.course": "list the notebooks of the course, copy them, or open one",
    "command.help.course.list": "what there is",
    "command.help.course.copy": "copy all notebooks into a folder of yours; what is yours there is never overwritten",
    "command.help.course.dest": "a folder; made when it does not exist",
    "command.help.course.open": "copy one notebook if it is not there yet, and open JupyterLab on it",
    "command.help.course.number": "such as 03",
    "command.help.course.lang": "language of the notebooks (default: that of your system)",
    "command.help.release": "make the student version of a source notebook: solutions out, one language",
    "command.help.release.more": "Every answer in the source is tried first; a release in which one does not come"
    " out as promised, or that still holds a line of a solution, is refused. With --out a zip and a manifest are"
    " written as well.",
    "command.help.release.source": "source notebooks (py:percent), or folders of them",
    "command.help.release.lang": "one language only (default: both)",
    "command.help.release.out": "folder for notebook, zip and manifest (default: the notebook alone, into ../LANG)",
    "command.help.release.stamp": "only write into the source which English text each Chinese cell was made from",
    "command.course.title": "The course: {count} notebooks.",
    "command.course.row": "{title} ({count} exercises, about {minutes} minutes)",
    "command.course.next": "`nbautograd course open 01` opens your copy of one; `nbautograd course copy DEST`"
    " copies all.",
    "command.course.copied": "Your copy: {path}",
    "command.course.kept": "Your copy is already there, and stays as you left it: {path}",
    "command.course.aside": "There is a newer version: {path}. Yours was kept aside, unchanged, as {aside}.",
    "command.course.no_lesson": "there is no notebook {number}; there are {numbers}.",
    "command.release.no_source": "{path} is no source notebook and no folder of them.",
    "command.release.made": "Released: {path}",
    "command.release.stamped": "{name}: {count} translations stamped.",
    "command.doctor.well": "All is well.",
    "command.doctor.ill": "Not well yet: see the lines marked with ✗.",
    "command.doctor.python_old": "nbautograd needs Python 3.10 or newer",
    "command.doctor.installed": "{version}, in {folder}",
    "command.doctor.torch": "{version}, {device}",
    "command.doctor.torch_missing": "not installed. `{python} -m pip install torch`",
    "command.doctor.torch_broken": "does not load: {reason}",
    "command.doctor.torch_untested": "{version}, {device}. nbautograd was tested with {tested}; tell us if something "
    "looks wrong",
    "command.doctor.cpu": "on the CPU",
    "command.doctor.cuda": "CUDA {cuda} with {count} device(s)",
    "command.doctor.cuda_absent": "built for CUDA {cuda}, no device found: on the CPU",
    "command.doctor.missing": 'not installed. `{python} -m pip install "nbautograd[lab]"`',
    "command.doctor.old": "{version}, but nbautograd needs {wanted}: "
    '`{python} -m pip install --upgrade "nbautograd[lab]"`',
    "command.doctor.browser_side": "the part that runs in JupyterLab is {found}, which fits",
    "command.doctor.browser_side_missing": "JupyterLab does not find the part that runs in the browser, so the live "
    "views stay empty: `{python} -m pip install --force-reinstall {package}`",
    "command.doctor.browser_side_differs": "the part that runs in JupyterLab is {found} (in {folder}), but Python "
    "has {version}: update both in the same environment",
    "command.doctor.kernel": "notebooks run on this Python",
    "command.doctor.kernel_other": "the kernel python3 runs {other}, not this Python ({python}). "
    "`{python} -m ipykernel install --sys-prefix` mends it",
    "command.doctor.kernel_missing": "no kernel named python3: `{python} -m ipykernel install --sys-prefix`",
    "command.doctor.engine": "calls are recorded by: {engine}",
    "command.doctor.engine_missing": "the recording engine does not load: {reason}",
    "command.doctor.optional": "not found; not needed: {use}",
    "command.doctor.dot": "nbautograd draws graphs itself, graphviz's dot is one more way to",
    "command.doctor.chromium": "only the project's own browser tests use it",
    "command.help.freeze": "write a copy of a notebook whose live views need no kernel and no network",
    "command.help.freeze.more": (
        "The notebook is not changed. Zooming works for the entries that are kept (blocks of up to 60,000 "
        "entries), the microscope for the worst entry of a block; other questions to Python are answered with"
        " a sentence."
    ),
    "command.help.freeze.notebook": "the notebook, an .ipynb file",
    "command.help.freeze.out": "where the copy goes, .ipynb or .html (default: NAME.frozen.ipynb beside the notebook)",
    "command.help.freeze.execute": (
        "run the notebook first, in memory; or never run it (default: run it when it stores no live views)"
    ),
    "command.freeze.no_notebook": "{path} is not a notebook that can be read ({reason}).",
    "command.freeze.no_file": "{path}: {reason}.",
    "command.freeze.running": "{path} stores no live views that could be frozen as they are: running it, in memory.",
    "command.freeze.kind": "the copy must be an .ipynb or an .html file, not {path}.",
    "command.freeze.itself": "the copy would be written over {path} itself. Name another file with -o.",
    "command.freeze.taken": (
        "{path} exists and is not a frozen copy, so it is left alone. Move it aside, or name another file with -o."
    ),
    "command.freeze.nothing": (
        "{path} shows nothing that could be frozen: no live view of nbautograd is stored in it. With "
        "--execute it is run first."
    ),
    "command.freeze.failed": "a cell failed: {reason}. The copy shows which one: {path}",
    "command.freeze.done": "{path}: {count} live views that need no kernel and no network, {size} kB in all.",
    "command.freeze.unknown": (
        "{count} reports stay as they are stored, to be read only: the state of their live views is not "
        "stored. --execute makes it."
    ),
    "command.freeze.large": "{count} reports stay to be read only: their live views would take more than 2 MB each.",
    "command.freeze.trust": (
        "JupyterLab shows the views once you trust the notebook (`jupyter trust {path}`); until then, and "
        "wherever scripts do not run, it shows the reports."
    ),
}
