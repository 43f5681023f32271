/** One question of the session: what was asked, and what is known so far. No page in here. */

/** @typedef {import("./policy.js").Decision} Decision */
/** @typedef {"waiting"|"answering"|"answered"|"stopped"|"failed"} State */

export class Turn {
  /**
   * @param {string} question
   * @param {{mode: string, threshold: number|null, k: number|null}} policy As chosen when it was asked.
   */
  constructor(question, policy) {
    this.question = question;
    this.policy = policy;
    /** @type {State} */
    this.state = "waiting";
    /** @type {Decision|null} */
    this.decision = null;
    /** @type {Array<{title: string, text: string, score: number|null, marks?: Array<[number, number]>}>} */
    this.passages = [];
    this.answer = "";
    /** @type {number|null} */
    this.seconds = null;
    /** @type {import("./api.js").ServiceError|null} */
    this.error = null;
  }

  /** Whether more may come. */
  get open() {
    return this.state === "waiting" || this.state === "answering";
  }

  /**
   * Take in what the server sent.
   *
   * @param {{name: string, data: any}} event
   */
  take({ name, data }) {
    if (name === "decision") {
      this.state = "answering";
      this.decision = this.#read(data);
    } else if (name === "context") {
      this.passages = data;
    } else if (name === "token") {
      this.answer += data.text;
    } else if (name === "done") {
      this.decision = this.#read(data);
      this.passages = data.context;
      this.answer = data.answer;
      this.seconds = data.seconds;
      this.state = "answered";
    }
  }

  /** Nothing more is wanted. */
  stop() {
    this.state = "stopped";
  }

  /** @param {import("./api.js").ServiceError} error */
  fail(error) {
    this.state = "failed";
    this.error = error;
  }

  #read({ retrieved, decision }) {
    const { rule, reason, signal_kind: kind, signal_probability: probability } = decision;
    return {
      route: retrieved ? "retrieve" : "direct",
      // A judge's probability, and a threshold on popularity, are none of P(RET): the reason tells them.
      probability: kind === "judged" ? null : probability,
      threshold: rule === "probability" ? decision.threshold : null,
      kind,
      rule,
      reason,
      mode: this.policy.mode,
    };
  }
}
