/** What is said of routes and probabilities, in one place for eyes and ears. */

const threeDigits = new Intl.NumberFormat("en-GB", { maximumSignificantDigits: 3 });

/** @typedef {"direct"|"retrieve"} Route */

/** How a route is called once it was taken. */
export const ROUTE_NAMES = { direct: "From memory", retrieve: "Retrieved" };

const CONDITIONAL = { direct: "answered from memory", retrieve: "retrieved" };

/** How the policies are called that a visitor may choose. */
export const MODE_NAMES = {
  adaptive: "If needed",
  never_retrieve: "Never",
  always_retrieve: "Always",
  popularity: "By fame",
  decision_model: "By a judge",
};

/** @param {number} value @returns {string} Three significant digits, as in the server's reasons. */
export function figure(value) {
  return threeDigits.format(value);
}

/**
 * Say what is known of P(RET). What is not known is never a number.
 *
 * @param {{probability: number|null, kind: string}} signal
 * @returns {string}
 */
export function probabilityWords({ probability, kind }) {
  if (probability === null) return kind === "upper_bound" ? "P(RET) not listed" : "P(RET) unknown";
  const sign = { exact: "=", first_piece: "≈", upper_bound: "at most" }[kind] ?? "≈";
  return `P(RET) ${sign} ${figure(probability)}`;
}

/**
 * Say what another policy would do to a question.
 *
 * @param {Route} route
 * @param {{mode: string, threshold: number|null}} policy
 * @returns {string}
 */
export function whatIfWords(route, policy) {
  let under = `With “${MODE_NAMES[policy.mode] ?? policy.mode}”`;
  if (policy.mode === "adaptive") {
    under = policy.threshold === null ? "By the model’s own word" : `At a threshold of ${figure(policy.threshold)}`;
  }
  return `${under} this would be ${CONDITIONAL[route]}.`;
}
