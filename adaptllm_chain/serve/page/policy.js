/** What a policy would make of questions that were asked already. Pure: no page, no server. */

/**
 * @typedef {Object} Policy
 * @property {string} mode `adaptive`, `never_retrieve`, `always_retrieve`, or another that the server came with.
 * @property {number|null} threshold The cut on P(RET), for `adaptive`; null: the model's own word decides.
 */

/**
 * @typedef {Object} Decision
 * @property {"direct"|"retrieve"} route
 * @property {number|null} probability P(RET), or its upper bound; null where nothing is known.
 * @property {string} kind `exact`, `first_piece`, `upper_bound`, `judged` or `unknown`.
 * @property {string} rule Which rule decided.
 * @property {string} reason
 * @property {number|null} threshold The cut on P(RET), if one decided.
 * @property {string} mode The mode in which it was asked.
 */

/**
 * The route that a question would take, by the rules of the server's own policies.
 *
 * @param {Decision} decision How it was decided when it was asked.
 * @param {Policy} policy
 * @returns {"direct"|"retrieve"|null} null where what is known does not say.
 */
export function routeUnder(decision, policy) {
  if (policy.mode === "never_retrieve") return "direct";
  if (policy.mode === "always_retrieve") return "retrieve";
  if (policy.mode !== "adaptive") return decision.mode === policy.mode ? decision.route : null;
  if (policy.threshold === null) return decision.rule === "token" ? decision.route : null;
  // A model whose listed words do not hold <RET> never asks for it, whatever the threshold.
  if (decision.kind === "upper_bound") return "direct";
  if (decision.probability === null) return null;
  return decision.probability >= policy.threshold ? "retrieve" : "direct";
}

/**
 * Count routes.
 *
 * @param {Array<"direct"|"retrieve"|null>} routes
 * @returns {{total: number, retrieved: number, unknown: number}}
 */
export function tally(routes) {
  return {
    total: routes.length,
    retrieved: routes.filter((route) => route === "retrieve").length,
    unknown: routes.filter((route) => route === null).length,
  };
}
