// Tensors and other values: name, dtype and shape, numbers as a small heat map, what is odd about them.

import { count, index, number, shape, size } from "./formats.js";
import { thumbnail, thumbnailWidth } from "./heatmap.js";
import { el, numbers, unravel } from "./shared.js";

/** @typedef {import("./types").Page} Page */
/** @typedef {import("./types").Value} Value */
/** @typedef {import("./types").Summary} Summary */

/**
 * A titled column of values.
 * @param {Page} page
 * @param {string} title
 * @param {Value[]} values
 */
export function valueList(page, title, values) {
  return el(
    "section",
    "values",
    el("h5", null, title),
    values.length
      ? el("ul", null, ...values.map((value) => el("li", null, valueView(page, value))))
      : el("p", "faint", page.t("nothing")),
  );
}

/**
 * @param {Page} page
 * @param {Value} value
 */
function valueView(page, { name, type, repr, tensor, same_as }) {
  const head = el(
    "div",
    null,
    el("code", "name", name),
    " ",
    tensor
      ? tensorKind(page, tensor)
      : el("code", { class: type === "NoneType" ? "faint" : "" }, repr),
    same_as && el("span", "faint", ` ${page.t("same_as", { name: same_as })}`),
  );
  return el("div", "value", head, tensor && !same_as && tensorBody(page, name, tensor));
}

/** @param {Page} page @param {Summary} tensor */
function tensorKind(page, tensor) {
  const facts = [tensor.dtype, shape(tensor.shape ?? []) || page.t("scalar")];
  if (tensor.device && tensor.device !== "cpu") facts.push(tensor.device);
  return el("span", "faint", facts.join(" "));
}

/**
 * The thumbnail and the statistics of a tensor.
 * @param {Page} page
 * @param {string} name
 * @param {Summary} tensor
 */
export function tensorBody(page, name, tensor) {
  const odd = ["nan", "inf"]
    .filter((id) => tensor[id] > 0)
    .map((id) => el("span", "bad", page.t(`stat.${id}`, { count: count(tensor[id]) })));
  const said = tensor.min === tensor.max ? ["constant"] : ["min_max", "mean_std"];
  const facts = Object.fromEntries(
    ["min", "max", "mean", "std"].map((id) => [id, number(tensor[id], 3)]),
  );
  const stats =
    typeof tensor.min === "number" && tensor.numel > 1
      ? said.map((id) => page.t(`stat.${id}`, facts))
      : [];
  const line = el(
    "div",
    "faint stats",
    stats.join(" · "),
    ...odd.flatMap((o) => [" ", o]),
    tensor.reason && ` ${tensor.reason}`,
    tensor.sampled && ` ${page.t("sampled")}`,
  );
  return el("div", null, tensor.thumbnail && picture(page, name, tensor), line.textContent && line);
}

/** @param {Page} page @param {string} name @param {Summary} tensor */
function picture(page, name, tensor) {
  const packed = /** @type {import("./types").Packed} */ (tensor.thumbnail);
  const [rows, cols] = packed.shape;
  const sizes = tensor.shape ?? [],
    exact = rows * cols === tensor.numel;
  /** @param {number} cell @param {number} value */
  function say(cell, value) {
    if (exact) return `${name}${index(unravel(cell, sizes))} = ${number(value)}`;
    return page.t(tensor.sampled ? "cell_sampled" : "cell_pooled", { value: number(value) });
  }
  return thumbnail(
    page,
    { rows, cols, values: numbers(packed) },
    thumbnailWidth(rows, cols, exact),
    page.t("thumbnail", { name, dtype: tensor.dtype, shape: shape(sizes) }),
    { say },
  );
}

/**
 * What is kept on ctx.
 * @param {Page} page
 * @param {any} ctx
 * @param {boolean} [flags]
 */
export function ctxView(page, ctx, flags = true) {
  const values = [...ctx.saved, ...ctx.attributes];
  const facts = [
    ctx.needs_input_grad.length &&
      flags &&
      `needs_input_grad = (${ctx.needs_input_grad.map((/** @type {boolean} */ b) => (b ? "True" : "False")).join(", ")})`,
    ctx.dirty.length && `mark_dirty(${ctx.dirty.join(", ")})`,
    ctx.non_differentiable.length &&
      `mark_non_differentiable(${ctx.non_differentiable.join(", ")})`,
    ctx.materialize_grads === false && "set_materialize_grads(False)",
  ].filter(Boolean);
  const list = valueList(page, `ctx${ctx.bytes ? ` · ${size(ctx.bytes)}` : ""}`, values);
  list.append(...facts.map((fact) => el("code", "fact-line", fact)));
  if (ctx.freed) list.append(el("p", "faint", page.t("freed")));
  return list;
}
