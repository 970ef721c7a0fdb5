"""Chinese sentences of the subject ``recording``."""

TEXTS: dict[str, str] = {
    # what could not be done
    "recording.no_function": (
        "{caller}() 需要 torch.autograd.Function 的子类（或它的 apply），得到的却是 {got}。"
        "请传入类本身，例如 {caller}(LinearFunction)。"
    ),
    "recording.no_such_level": "没有 {level} 这个记录级别，可选：{levels}。",
    "recording.not_callable": "{function}.{method} 没有被记录：它既不是函数也不是静态方法，因此照原样运行。",
    "recording.no_backward_class": (
        "{function}.forward 没有被记录：这个版本的 PyTorch 没有为该类建立反向类。它照原样运行。"
    ),
    "recording.failed_to_install": "{function} 没有被记录，照原样运行：{error}。",
    "recording.no_engine": "这里无法记录：在 torch {torch} 上没有一种记录方式通过自检。",
    "recording.traced": "torch.compile 读取了 {function}：在编译后的代码里它的方法不再被调用，所以那些调用不在记录中。",
    "recording.error": "记录器自身出错 {count} 次（{error}）。你的运行没有受影响，只是这些记录不完整。",
    "recording.incomplete": "这次调用的记录不完整：{reason}。",
    # old torch
    "recording.legacy": (
        "{function} 是 PyTorch 0.4 之前的写法：方法是使用 self 的实例方法，如今 PyTorch 已不再运行它。"
        "下面是同一个 Function 的静态方法写法，ctx 代替了 self。请用 {after} 代替 {before}。"
    ),
    "recording.legacy_by_hand": (
        "{function} 是 PyTorch 0.4 之前的写法：方法是使用 self 的实例方法，如今 PyTorch 已不再运行它。"
        "请在 forward 和 backward 上方加上 @staticmethod，把 self 写成 ctx，并用 {after} 代替 {before}。"
    ),
    # read from the source
    "recording.number_of_gradients": (
        "`{function}.backward` 在第 {line} 行返回了 {got} 个值，而 forward 有 {expected} 个参数（{inputs}）。"
        "请按同样的顺序为每个参数返回一个值，没有梯度的参数返回 None。"
    ),
    "recording.missing_staticmethod": (
        "`{function}.{method}`（第 {line} 行）缺少 `@staticmethod`。它只有经由 apply 才能运行，请在上方补上 `@staticmethod`。"
    ),
    "recording.undefined_name": (
        "`{function}.{method}` 在第 {line} 行用到了 `{name}`，但没有定义过这个名字。PyTorch 调用它时会抛出 NameError。"
    ),
    "recording.name_of_forward": (
        "`{function}.{method}` 在第 {line} 行用到了 `{name}`：它是 forward 里的变量，{method} 看不到。"
        "请在 forward 中用 `ctx.save_for_backward({name})` 保存，再从 `ctx.saved_tensors` 取出。"
    ),
    "recording.output_on_ctx": (
        "`{function}` 把输出 `{value}` 存成了 `{attribute}`（第 {line} 行）。输出和 ctx 互相引用，两者都不会被释放。"
        "请改用 `ctx.save_for_backward({value})`。"
    ),
    "recording.tensor_on_ctx": (
        "`{function}` 把输入 `{value}` 存成了 `{attribute}`（第 {line} 行）。如果它在反向之前被就地修改，梯度会出错却不报错。"
        "请改用 `ctx.save_for_backward({value})`。"
    ),
    "recording.data_in_backward": (
        "`{function}.backward` 在第 {line} 行用了 `{text}`：autograd 看不到对它的运算，二阶导数会出错却不报错。"
        "请去掉 `.data`，或在 backward 上方加 `@once_differentiable`。"
    ),
    "recording.numpy_in_backward": (
        "`{function}.backward` 在第 {line} 行用了 `{text}`：numpy 不在 autograd 之内，因此没有二阶导数。"
        "请在 backward 上方加 `@once_differentiable`，这样求二阶导数时会得到明确的错误。"
    ),
    "recording.no_grad_in_backward": (
        "`{function}.backward` 在第 {line} 行用了 `{text}`：其中的计算被当作常数，二阶导数会出错却不报错。"
        "请改为在 backward 上方加 `@once_differentiable`。"
    ),
    "recording.empty_forward": "`{function}.forward`（第 {line} 行）没有返回值，apply 得到的是 None。请返回输出张量。",
    "recording.empty_backward": (
        "`{function}.{method}`（第 {line} 行）没有返回值，梯度无法通过 `{function}`。请为 forward 的每个参数返回一个梯度。"
    ),
    "recording.returns_a_list": (
        "`{function}.forward` 返回了一个 {kind}（第 {line} 行）：PyTorch 不会查看其内部，里面的张量没有 grad_fn，"
        "backward 也不会运行。请返回张量或张量的元组。"
    ),
    "recording.gradient_in_place": (
        "`{function}.backward` 在第 {line} 行就地修改了 `{name}`（`{text}`）。"
        "引擎可能还要把同一个张量交给别处，那里的梯度就错了。请在 `{name}.clone()` 上计算，或不用就地运算。"
    ),
    "recording.saved_twice": (
        "`{function}` 调用了两次 `save_for_backward`（第 {first} 行和第 {line} 行）：后一次会取代前一次。请一次保存全部。"
    ),
    "recording.saved_not_unpacked": (
        "`{function}.backward` 把 `ctx.saved_tensors` 当成一个张量来用（`{name}`，第 {line} 行），它其实是元组。"
        "请写成 `{name}, = ctx.saved_tensors`。"
    ),
    # seen in a call
    "recording.call_mutates_input": (
        "`{function}.forward` 就地修改了 `{input}`，却没有调用 `ctx.mark_dirty({input})`（第 {call} 次调用）。"
        "autograd 会以为它没有变；请标记它，或在副本上计算。"
    ),
    "recording.call_output_aliases_input": (
        "`{function}.forward` 把输入 `{input}` 本身作为 {output} 返回（第 {call} 次调用）。PyTorch 会为它建立视图，"
        "之后就地修改会报错。请返回 `{input}.clone()` 或新的张量。"
    ),
    "recording.call_output_on_ctx": (
        "`{function}` 把输出 `{value}` 存成了 `ctx.{attribute}`（第 {call} 次调用）：两者互相引用，不会被释放。"
        "请改用 `ctx.save_for_backward({value})`。"
    ),
    "recording.call_tensor_on_ctx": (
        "`{function}` 把张量 `{value}` 存成了 `ctx.{attribute}`（第 {call} 次调用）。如果它在反向之前被就地修改，"
        "梯度会出错却不报错。请改用 `ctx.save_for_backward`。"
    ),
    "recording.call_mutates_grad_output": (
        "`{function}.backward` 就地修改了 `{name}`（第 {call} 次调用）。"
        "引擎可能还要把同一个张量交给别处，那里的梯度就错了。请在 `{name}.clone()` 上计算。"
    ),
    "recording.call_wrong_number_of_gradients": (
        "`{function}.backward` 返回了 {got} 个值，而 forward 是用 {expected} 个参数调用的（第 {call} 次调用）。"
        "请为每个参数返回一个值，没有梯度的参数返回 None。"
    ),
    "recording.call_none_gradient": (
        "`{function}.backward` 为需要梯度的 `{input}` 返回了 None（第 {call} 次调用）。`{input}.grad` 保持原样，也不会报错。"
    ),
    "recording.call_gradient_not_a_tensor": (
        "`{function}.backward` 把一个 {got} 作为 `{input}` 的梯度返回（第 {call} 次调用）。请返回张量或 None。"
    ),
    "recording.call_gradient_for_non_tensor": (
        "`{function}.backward` 为 `{input}` 返回了梯度，而它是一个 {type}（第 {call} 次调用）。请为它返回 None。"
    ),
    "recording.call_ignores_needs_input_grad": (
        "`{function}.backward` 为不需要梯度的 `{input}` 计算了梯度（第 {call} 次调用）。"
        "先看 `ctx.needs_input_grad` 可以省去这些计算。"
    ),
    "recording.call_grad_shape_reduced": (
        "`{function}.backward` 为形状 {expected} 的 `{input}` 返回了形状 {got} 的梯度（第 {call} 次调用）。"
        "引擎会把它求和成 {expected}；如果这正是你的意思，请自己求和。"
    ),
    "recording.call_wrong_gradient_shape": (
        "`{function}.backward` 为形状 {expected} 的 `{input}` 返回了形状 {got} 的梯度（第 {call} 次调用）。"
        "梯度的形状必须与输入相同。"
    ),
    "recording.call_grad_dtype_cast": (
        "`{function}.backward` 为 {expected} 的 `{input}` 返回了 {got} 的梯度（第 {call} 次调用）。"
        "引擎会悄悄转换类型，可能丢失精度。"
    ),
    "recording.call_nonfinite": (
        "`{function}.backward` 把有限的梯度变成了 NaN 或 inf（{gradient}，第 {call} 次调用）。"
        "请检查是否除以零，或在定义域边缘开方、取对数。"
    ),
    "recording.call_mutates_saved": (
        "`{function}` 为反向保存的 `{name}` 已经不是 forward 结束时的样子了（到第 {call} 次调用为止）。"
        "之后的每次反向看到的都是改过的值。请不要改动保存的张量，或者保存一份副本。"
    ),
    "recording.call_output_shares_memory": (
        "`{function}.forward` 返回的 {output} 与输入 `{input}` 共用内存，而 autograd 并不知道（第 {call} 次调用）："
        "就地修改其中一个，另一个也会变，却不报错。请返回 `{input}.clone()` 或新的张量。"
    ),
    "recording.call_hidden_input": (
        "`{function}.forward` 用到了 `{name}`，它需要梯度，却不是参数（第 {call} 次调用）：autograd 看不到它，"
        "`{name}.grad` 保持原样。请把 `{name}` 传给 apply。"
    ),
    "recording.call_hidden_in_container": (
        "`{function}` 得到的需要梯度的张量装在一个 {kind} 里（`{input}`，第 {call} 次调用）：autograd 不会查看其内部，"
        "它们得不到梯度。请把每个张量作为单独的参数传入。"
    ),
    "recording.call_shared_state": (
        "类 `{function}` 的属性 `{name}` 在前向（第 {forward} 次调用）与反向（第 {call} 次调用）之间变了："
        "可能是另一次调用改的，那么这个梯度就属于别的调用。请把它放在 ctx 上。"
    ),
    "recording.call_grad_buffer_reused": (
        "`{function}.backward` 作为 {gradient} 返回的张量，正是第 {earlier} 次调用返回过、又被重新写入的那一个"
        "（第 {call} 次调用）：留着第一个梯度的人，手里的已经是第二个。请每次返回新的张量。"
    ),
    "recording.call_fails_noncontiguous_grad": (
        "`{function}.backward` 因为 `{name}` 不连续而失败（第 {call} 次调用：{error}）。这样的梯度很常见，"
        "例如在 `sum()` 或 `t()` 之后。请使用 `{name}.reshape(...)` 或 `{name}.contiguous()`。"
    ),
}
