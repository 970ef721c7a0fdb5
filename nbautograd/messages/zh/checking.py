"""Chinese sentences of the subject ``checking``."""

TEXTS: dict[str, str] = {
    "checking.sparse": (
        "第 {position} 个输入是稀疏张量。可以对它存储的值求导：请写 gradcheck(lambda values: "
        "fn(torch.sparse_coo_tensor(indices, values, size)), values)；要对所有元素求导，请写 fn(dense.to_sparse())。"
    ),
    "checking.hints_unknown": 'hints 是 {given}，但只能是 "none"、"what"、"where" 或 "fix"。',
    "checking.not_callable": (
        "gradcheck 的第一个参数要能被调用：Function 类、它的 apply，或任意函数；这里得到的是 {type} 类型的值。"
        "请写成 gradcheck(MyFunction, (x, y))。"
    ),
    "checking.inputs_not_tuple": (
        "输入要放在一个元组里，顺序与函数的参数一致；这里得到的是 {type} 类型的值。"
        "请写成 gradcheck(fn, (x, y))；只有一个张量时也可以写 gradcheck(fn, x)。"
    ),
    "checking.nothing_requires_grad": (
        "没有任何输入需要梯度，所以没有可检查的梯度。创建张量时加上 requires_grad=True，"
        "或者对第 {position} 个输入调用 .requires_grad_()。"
    ),
    "checking.integers_only": (
        "输入是 {dtype} 类型的张量，没有梯度可言。请改用浮点张量，例如 x.double().requires_grad_()。"
    ),
    "checking.no_tensors": "{count} 个输入里没有张量，没有可求导的对象。请至少传入一个 requires_grad=True 的浮点张量。",
    "checking.legacy": (
        "{name} 用的是旧版 torch 的写法：forward 和 backward 是实例方法，现在的 torch 已不再执行它们。"
        "请给两者加上 @staticmethod，把第一个参数从 self 改为 ctx，然后用 {name}.apply(...) 调用。"
    ),
    "checking.too_many_entries": (
        "{rows} 行乘 {cols} 列超过了一次最多生成的 {limit} 个元素。请只取一部分，"
        "例如 block.analytical(rows=slice(0, 100), cols=slice(0, 100))，或用 block.pooled() 看缩略图。"
    ),
    "checking.no_such_entry": "这一侧只有 {size} 个元素，编号从 0 开始。",
    "checking.structure_dense": "任何位置都可能不为零",
    "checking.structure_diagonal": "每个输出元素只依赖一个输入元素",
    "checking.structure_block_diagonal": "它由互相独立的小块组成",
    "checking.backward_said": "逐个让余切向量通过 backward；{structure}。",
    "checking.backward_not_linear": "backward 对组合的结果不等于各行结果的组合，所以每一行都单独求；{structure}。",
    "checking.differences_said": "与 backward 最多相差 {largest}，{precision}。",
    "checking.promoted": "以 float64 计算",
    "checking.same_precision": "以输入自身的精度计算",
    "checking.looking_for_causes": "正在查找原因并检查二阶导数。",
    "checking.interrupted": "检查被中断，这里是中断之前完成的部分。",
    "checking.no_blocks": "没有任何输出带梯度，所以没有可比较的内容。",
    "checking.because_kink": "在这一点上 `{output}` 关于 `{input}` 有折点；换一个稍微偏离的输入再试。",
    "checking.because_jump": "`{output}` 在 `{input}` 的这个取值处发生跳变，那里没有导数；换一个稍微偏离的输入再试。",
    "checking.because_staircase": (
        "有限差分所到之处，`{output}` 关于 `{input}` 都是平的，因此无法证实 backward 返回的斜率。"
        "如果这是有意的替代梯度（直通估计、脉冲神经元），那就没有问题。"
    ),
    "checking.because_float32": (
        "输入是 float32，舍入误差掩盖了 `{output}` 关于 `{input}` 的差分；请试试 `{input}.double()`。"
    ),
    "checking.because_noise": (
        "`{output}` 的值不够确定（forward 中的舍入或随机性），无法对 `{input}` 求差分；"
        "请试试 float64 输入或固定随机种子。"
    ),
    "checking.because_domain_edge": "`{output}` 在 `{input}` 的这个取值旁边不是有限数；请使用函数定义域内部的输入。",
    "checking.because_interrupted": "中断时 `d {output} / d {input}` 还没有完成。",
    "checking.wrong_unclassified": (
        "`{output}` 关于 `{input}` 的梯度有误：{entries} 个元素中有 {wrong} 个不对。差得最多的是 d {at}："
        "有限差分给出 {numerical}，你的 backward 给出 {analytical}。"
    ),
    "checking.witness_agrees": "对一个随机的余切向量，与 backward 有 {digits} 位数字一致。",
    "checking.witness_differs": "对一个随机的余切向量，与 backward 相差其最大元素的 {percent} %。",
    "checking.absent_no_own_forward": "这里没有可以单独运行 forward 的 Function。",
    "checking.absent_not_entered": ("该 Function 是通过另存的 `apply` 调用的，因此无法单独运行它的 forward。"),
    "checking.absent_raised": "脱离 apply 单独运行时它抛出了异常。",
    "checking.absent_other_values": "脱离 apply 单独运行时，forward 给出不同的值。",
    "checking.absent_leaves_torch": "forward 离开了 torch（numpy、.data、.item()），自动求导无法跟踪。",
    "checking.absent_not_smooth": "它与差分不一致（替代梯度、被 detach 的部分或折点），所以没有采信。",
    "checking.absent_no_jvp": "这个 Function 没有自己的 jvp。",
    "checking.jvp_wrong": (
        "Function 自己的 jvp 与 backward 在 `{input}` 上不一致：沿一个随机方向两者相差 {apart}（相对大小），"
        "而 backward 与有限差分一致。请检查 jvp。"
    ),
    "checking.jvp_batched": (
        "一次要求多个切向量时（torch.func.jacfwd 和 hessian 就是这样做的），这个 Function 的 jvp 报错：{said}"
        "请去掉依赖数值的写法（.item()、if、numpy）。"
    ),
    "checking.jvp_batched_wrong": (
        "这个 Function 的 jvp 在 vmap 下给出的切向量和逐个计算的不同，torch.func.jacfwd 和 hessian 会悄悄算错。"
        "请在 jvp 里找 .data，或者存在 ctx 上的东西。"
    ),
    "checking.forward_over_reverse": (
        "在 backward 之上用前向模式求二阶导数（torch.func.hessian 就是这样做的）时报错：{said}"
        "在 backward 之上用反向模式求得的是对的。"
    ),
    "checking.forward_over_reverse_wrong": (
        "在 backward 之上用前向模式求得的二阶导数（torch.func.hessian 就是这样做的）和反向模式求得的不同。"
        "forward 交给 backward 的东西必须带着它的切向量：请保存输入或输出，不要保存由它们算出来的东西。"
    ),
    "checking.sampled_directions": "这个 Function 有 {elements} 个元素，所以只沿一个（或几个）随机方向求了二阶导数。",
    "checking.not_kept": (
        "这个 Function 和它的输入已经不在了（报告来自另一个内核，之后又有了许多报告，或者输入太大）。请重新运行检查。"
    ),
}
