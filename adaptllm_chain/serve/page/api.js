/** The server's API. Addresses are relative to this file, so that the app may be mounted anywhere. */

import { readEvents } from "./events.js";

/** What went wrong, what was expected, and what to do: the three parts of the server's errors. */
export class ServiceError extends Error {
  /**
   * @param {string} message
   * @param {{expected?: string|null, hint?: string|null, status?: number, cause?: unknown}} [parts]
   */
  constructor(message, { expected = null, hint = null, status = 0, cause } = {}) {
    super(message, { cause });
    this.name = "ServiceError";
    this.expected = expected;
    this.hint = hint;
    this.status = status;
  }
}

/**
 * @returns {Promise<Object>} The server's settings.
 * @throws {ServiceError}
 */
export async function readSettings() {
  const response = await reach(() => fetch(address("settings")));
  if (!response.ok) throw await refusal(response);
  return response.json();
}

/**
 * Ask, and pass on what comes: `decision`, `context`, `token` many times, `done`.
 *
 * @param {Object} request The body of POST /ask, less `stream`.
 * @param {{key: string, signal: AbortSignal}} options
 * @yields {{name: string, data: any}}
 * @throws {ServiceError}
 */
export async function* ask(request, { key, signal }) {
  const headers = { "Content-Type": "application/json" };
  if (key) headers.Authorization = `Bearer ${key}`;
  const body = JSON.stringify({ ...request, stream: true });
  const response = await reach(() => fetch(address("ask"), { method: "POST", headers, body, signal }));
  if (!response.ok) throw await refusal(response);
  const events = readEvents(response.body);
  try {
    for (;;) {
      const { value: event, done } = await reach(() => events.next());
      if (done) break;
      const data = JSON.parse(event.data);
      if (event.name === "error") throw new ServiceError(data.error.message, data.error);
      yield { name: event.name, data };
      if (event.name === "done") return;
    }
  } finally {
    await events.return();
  }
  throw new ServiceError("The answer broke off: the server ended it without saying why.", {
    hint: "ask again; if it happens again, look at what the server printed",
  });
}

function address(path) {
  return new URL(`../${path}`, import.meta.url);
}

async function reach(call) {
  try {
    return await call();
  } catch (cause) {
    // fetch reports every failure of the network as a TypeError, and nothing else so.
    if (!(cause instanceof TypeError)) throw cause;
    throw new ServiceError("The server does not answer.", {
      hint: "it may have been stopped: start it again with adaptllm serve --index DIR, then ask again",
      cause,
    });
  }
}

async function refusal(response) {
  const { status } = response;
  const wait = response.headers.get("Retry-After");
  const said = await response.text();
  const error = readError(said) ?? { message: `The server answered ${status} ${response.statusText}`.trim() + "." };
  const later = wait === null ? null : `ask again in ${wait} ${wait === "1" ? "second" : "seconds"}`;
  return new ServiceError(error.message, { expected: error.expected, hint: error.hint ?? later, status });
}

/** A proxy's refusal is no JSON. */
function readError(text) {
  try {
    const { error } = JSON.parse(text);
    return typeof error?.message === "string" ? error : null;
  } catch (cause) {
    if (cause instanceof SyntaxError) return null;
    throw cause;
  }
}
