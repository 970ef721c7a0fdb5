// Written by frontend/generate.py from nbautograd/messages/: the words of the JupyterLab extension.

// prettier-ignore
export const WORDS = {
  "en": {
    "apply": "Apply",
    "apply_and_run": "Apply and run",
    "changed_since": "The code has changed since it was checked. Run the cell again.",
    "command.apply": "Autograd: apply the change of this line",
    "command.apply_and_run": "Autograd: apply the change of this line and run",
    "command.audit": "Autograd: audit this cell",
    "command.check": "Autograd: check the Function of this cell",
    "command.explain": "Autograd: explain the last error",
    "command.freeze": "Autograd: freeze this notebook as a page",
    "command.graph": "Autograd: show the graph of the selected variable",
    "command.next": "Autograd: go to the next finding",
    "command.release": "Autograd: hide the change of this line",
    "ghost": "change that was tried",
    "gone": "The checked code is not in a cell of this notebook.",
    "line": "line {line}",
    "untrusted": "This notebook is not trusted, so the change cannot be applied. Run the cell to trust its output."
  },
  "zh": {
    "apply": "应用",
    "apply_and_run": "应用并运行",
    "changed_since": "代码在检查之后改过。请重新运行这个单元格。",
    "command.apply": "Autograd：应用这一行的修改",
    "command.apply_and_run": "Autograd：应用这一行的修改并运行",
    "command.audit": "Autograd：审查这个单元格",
    "command.check": "Autograd：检查这个单元格的 Function",
    "command.explain": "Autograd：解释最近一次错误",
    "command.freeze": "Autograd：把这个 notebook 冻结成网页",
    "command.graph": "Autograd：显示所选变量的计算图",
    "command.next": "Autograd：转到下一处发现",
    "command.release": "Autograd：隐藏这一行的修改",
    "ghost": "试过的修改",
    "gone": "检查过的代码不在这个 notebook 的单元格里。",
    "line": "第 {line} 行",
    "untrusted": "这个 notebook 未受信任，不能应用修改。重新运行单元格即可信任它的输出。"
  }
};
