// Lines that run in the kernel of a notebook without a cell of their own.

/** @typedef {import("./jupyterlab").Kernel} Kernel */

/**
 * Run lines one after the other.
 * @param {Kernel} kernel
 * @param {string[]} codes
 * @param {string} cellId the cell that they are run for
 * @returns {Promise<{data: Record<string, any> | null, words: string}>} what the last one showed, or why it showed nothing
 */
export async function runInKernel(kernel, codes, cellId) {
  /** @type {Record<string, any> | null} */
  let data = null;
  let said = "";
  for (const code of codes) {
    data = null;
    const content = { code, store_history: false, stop_on_error: false };
    const future = kernel.requestExecute(content, true, { cellId });
    future.onIOPub = ({ header, content: seen }) => {
      // a bar comes first, and what it waited for in its place
      if (["display_data", "update_display_data", "execute_result"].includes(header.msg_type))
        data = seen.data["text/plain"] ? seen.data : data;
      if (header.msg_type === "stream" && seen.name === "stderr") said += seen.text;
      if (header.msg_type === "error") said = `${seen.ename}: ${seen.evalue}`;
    };
    await future.done.catch((/** @type {Error} */ problem) => (said = problem.message));
  }
  return said ? { data: null, words: said.trim() } : { data, words: "" };
}
