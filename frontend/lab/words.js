// The extension's own words, in the language of what they stand beside.

import { WORDS } from "./catalogue.js";

/** @typedef {keyof typeof WORDS.en} WordId */

/**
 * @param {string} language
 * @returns {(id: WordId, params?: Record<string, string | number>) => string}
 */
export const words = (language) => (id, params) =>
  (language === "zh" ? WORDS.zh : WORDS.en)[id].replace(/\{(\w+)\}/g, (all, name) =>
    String(params?.[name] ?? all),
  );
