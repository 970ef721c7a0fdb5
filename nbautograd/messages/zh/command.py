"""Chinese sentences of the subject ``command``."""

TEXTS: dict[str, str] = {
    "command.help": "在笔记本里看清 torch.autograd.Function 做了什么，以及它的 backward 错在哪里。",
    "command.help.more": "想了解某个命令，请用 `nbautograd 命令 --help`。",
    "command.help.lab": "打开 JupyterLab 和演示笔记本的副本",
    "command.help.lab.more": "副本归您所有：再次运行 `nbautograd lab`，看到的就是上次留下的样子。",
    "command.help.folder": "演示副本放在哪个文件夹（默认：当前文件夹）",
    "command.help.lang": "演示和报告使用的语言（默认：跟随系统）",
    "command.help.port": "服务器端口（默认：从 8888 起第一个空闲端口）",
    "command.help.no_browser": "只显示网址，不打开浏览器",
    "command.help.headless": "什么都不打开：运行演示，把结果写成旁边的一个 HTML 页面",
    "command.help.doctor": "检查 nbautograd 需要的东西是否齐全、是否互相匹配",
    "command.interrupted": "nbautograd：已停止。",
    "command.copied": "演示的副本：{path}",
    "command.kept": "演示的副本已经在那里，保持原样：{path}",
    "command.opening": "正在打开 JupyterLab。在这里按 Ctrl-C 可以停止。",
    "command.page": "演示已运行完毕，结果在 {path}",
    "command.missing": "这一步需要 {module}，但当前 Python 没有安装它。请运行\n"
    '    {python} -m pip install "nbautograd[lab]"',
    "command.port": "端口 {port} 无法使用（{reason}）。请换一个端口，或者省略 --port，自动选用第一个空闲端口。",
    "command.folder": "无法写入 {folder}（{reason}）。请用 --folder 指定您自己的文件夹。",
    "command.no_notebook": "在 {package} 里面和旁边都找不到笔记本 {name}。安装不完整，请重新安装 nbautograd。",
    "command.no_json": "{path} 不是可以读取的笔记本（{reason}）。把它移开，就会得到一份新的副本。",
    "command.page_taken": "{path} 已经存在，而且不是 nbautograd 写的，所以没有动它。请把它移开，或者用 --folder "
    "换一个文件夹。",
    "command.cell_failed": "演示里有一个单元格出错：{reason}。页面上可以看到是哪一个：{path}",
    "command.help.course": "列出课程的笔记本，复制它们，或打开其中一个",
    "command.help.course.list": "有哪些",
    "command.help.course.copy": "把所有笔记本复制到你的文件夹；那里属于你的文件绝不会被覆盖",
    "command.help.course.dest": "文件夹；不存在时会新建",
    "command.help.course.open": "如果还没有就复制一个笔记本，然后用 JupyterLab 打开",
    "command.help.course.number": "例如 03",
    "command.help.course.lang": "笔记本的语言（默认与系统相同）",
    "command.help.release": "由源笔记本生成学生版：去掉答案，只留一种语言",
    "command.help.release.more": "先试一遍源文件里的每个答案；只要有一个结果与约定不符，或者还留着答案中的一行，"
    "就拒绝发布。加上 --out 时还会写出 zip 和清单。",
    "command.help.release.source": "源笔记本（py:percent），或装着它们的文件夹",
    "command.help.release.lang": "只生成一种语言（默认两种）",
    "command.help.release.out": "放笔记本、zip 和清单的文件夹（默认只把笔记本写进 ../LANG）",
    "command.help.release.stamp": "只在源文件里记下每个中文单元译自哪一份英文文本",
    "command.course.title": "课程：共 {count} 个笔记本。",
    "command.course.row": "{title}（{count} 个练习，约 {minutes} 分钟）",
    "command.course.next": "`nbautograd course open 01` 打开你自己的一份；`nbautograd course copy DEST` 复制全部。",
    "command.course.copied": "你的副本：{path}",
    "command.course.kept": "你的副本已经在那里，保持原样：{path}",
    "command.course.aside": "有新版本：{path}。你的那份原样保留，改名为 {aside}。",
    "command.course.no_lesson": "没有笔记本 {number}；有的是 {numbers}。",
    "command.release.no_source": "{path} 既不是源笔记本，也不是装着源笔记本的文件夹。",
    "command.release.made": "已发布：{path}",
    "command.release.stamped": "{name}：已标记 {count} 处译文。",
    "command.doctor.well": "一切正常。",
    "command.doctor.ill": "还有问题：请看标着 ✗ 的几行。",
    "command.doctor.python_old": "nbautograd 需要 Python 3.10 或更新的版本",
    "command.doctor.installed": "{version}，位于 {folder}",
    "command.doctor.torch": "{version}，{device}",
    "command.doctor.torch_missing": "没有安装。请运行 `{python} -m pip install torch`",
    "command.doctor.torch_broken": "无法加载：{reason}",
    "command.doctor.torch_untested": "{version}，{device}。nbautograd 是在 {tested} 上测试的；"
    "如果有什么不对劲，请告诉我们",
    "command.doctor.cpu": "在 CPU 上运行",
    "command.doctor.cuda": "CUDA {cuda}，{count} 个设备",
    "command.doctor.cuda_absent": "为 CUDA {cuda} 编译，但没有找到设备：在 CPU 上运行",
    "command.doctor.missing": '没有安装。请运行 `{python} -m pip install "nbautograd[lab]"`',
    "command.doctor.old": "{version}，但 nbautograd 需要 {wanted}："
    '`{python} -m pip install --upgrade "nbautograd[lab]"`',
    "command.doctor.browser_side": "JupyterLab 中的那一半是 {found}，互相匹配",
    "command.doctor.browser_side_missing": "JupyterLab 找不到在浏览器里运行的那一半，交互视图会是空白："
    "`{python} -m pip install --force-reinstall {package}`",
    "command.doctor.browser_side_differs": "JupyterLab 中的那一半是 {found}（在 {folder}），Python 这边却是"
    " {version}："
    "请在同一个环境里一起更新",
    "command.doctor.kernel": "笔记本用的就是这个 Python",
    "command.doctor.kernel_other": "内核 python3 用的是 {other}，不是这个 Python（{python}）。"
    "运行 `{python} -m ipykernel install --sys-prefix` 即可",
    "command.doctor.kernel_missing": "没有名为 python3 的内核：`{python} -m ipykernel install --sys-prefix`",
    "command.doctor.engine": "记录调用的方式：{engine}",
    "command.doctor.engine_missing": "记录引擎无法加载：{reason}",
    "command.doctor.optional": "没有找到；不是必需的：{use}",
    "command.doctor.dot": "nbautograd 自己会画图，graphviz 的 dot 只是另一种画法",
    "command.doctor.chromium": "只有本项目自己的浏览器测试才用到它",
    "command.help.freeze": "写出笔记本的一份副本，其中的交互视图不需要内核，也不需要网络",
    "command.help.freeze.more": (
        "原笔记本不会改变。保存了的元素（不超过六万个元素的块）可以放大，每个块差得最多的元素可以用显微"
        "镜看；其他要问 Python 的问题会得到一句说明。"
    ),
    "command.help.freeze.notebook": "笔记本，.ipynb 文件",
    "command.help.freeze.out": "副本写到哪里，.ipynb 或 .html（默认：笔记本旁边的 NAME.frozen.ipynb）",
    "command.help.freeze.execute": "先在内存中运行笔记本，或者从不运行（默认：没有保存交互视图时才运行）",
    "command.freeze.no_notebook": "{path} 不是可以读取的笔记本（{reason}）。",
    "command.freeze.no_file": "{path}：{reason}。",
    "command.freeze.running": "{path} 没有保存可以直接冻结的交互视图：正在内存中运行它。",
    "command.freeze.kind": "副本必须是 .ipynb 或 .html 文件，而不是 {path}。",
    "command.freeze.itself": "副本会覆盖 {path} 本身。请用 -o 指定另一个文件。",
    "command.freeze.taken": "{path} 已经存在，而且不是冻结的副本，所以没有动它。请把它移开，或者用 -o 指定另一个文件。",
    "command.freeze.nothing": (
        "{path} 里没有可以冻结的内容：没有保存 nbautograd 的交互视图。加上 --execute 就会先运行它。"
    ),
    "command.freeze.failed": "有一个单元格出错：{reason}。副本里可以看到是哪一个：{path}",
    "command.freeze.done": "{path}：{count} 个交互视图，不需要内核和网络，共 {size} kB。",
    "command.freeze.unknown": "{count} 份报告保持原样，只能阅读：它们的交互视图没有保存状态。--execute 会生成状态。",
    "command.freeze.large": "{count} 份报告只能阅读：每个交互视图都会超过 2 MB。",
    "command.freeze.trust": (
        "信任这份笔记本之后（`jupyter trust {path}`），JupyterLab 会显示交互视图；在此之前，以及在不运"
        "行脚本的地方，显示的是报告。"
    ),
}
