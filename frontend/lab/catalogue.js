// Written by frontend/generate.py from nbautograd/messages/: the words of the JupyterLab extension.

// prettier-ignore
export const WORDS = {
  "en": {
    "apply": "Apply",
    "apply_and_run": "Apply and run",
    "changed_since": "The code has changed since it was checked. Run the cell again.",
    "ghost": "change that was tried",
    "gone": "The checked code is not in a cell of this notebook.",
    "line": "line {line}",
    "untrusted": "This notebook is not trusted, so the change cannot be applied. Run the cell to trust its output."
  },
  "zh": {
    "apply": "应用",
    "apply_and_run": "应用并运行",
    "changed_since": "代码在检查之后改过。请重新运行这个单元格。",
    "ghost": "试过的修改",
    "gone": "检查过的代码不在这个 notebook 的单元格里。",
    "line": "第 {line} 行",
    "untrusted": "这个 notebook 未受信任，不能应用修改。重新运行单元格即可信任它的输出。"
  }
};
