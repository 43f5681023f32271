/** Server-Sent Events out of the body of a response. `EventSource` can neither POST nor send a key. */

/**
 * Read events as they come, however their bytes are cut.
 *
 * @param {ReadableStream<Uint8Array>} body
 * @yields {{name: string, data: string}}
 */
export async function* readEvents(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let event = { name: "message", data: [] };
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      rest += value;
      // A "\r" at the end may be half of a "\r\n".
      const lines = rest.split(/\r\n|\r(?!$)|\n/);
      rest = lines.pop();
      for (const line of lines) {
        if (line === "") {
          if (event.data.length > 0) yield { name: event.name, data: event.data.join("\n") };
          event = { name: "message", data: [] };
        } else {
          readField(line, event);
        }
      }
    }
  } finally {
    await reader.cancel();
  }
}

function readField(line, event) {
  const colon = line.indexOf(":");
  const field = colon < 0 ? line : line.slice(0, colon);
  const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
  if (field === "event") event.name = value;
  if (field === "data") event.data.push(value);
}
