// Functions that run inside a page and measure it there, so that the way between this process and the browser does not
// count. Each function is sent to the page alone and therefore uses nothing outside itself.

/** Note when the first element that the selector finds is in the document, since the start of the navigation. */
export function waitForFirst(selector) {
  const look = () => {
    if (!document.querySelector(selector)) return;
    window.firstSeenMs = performance.now();
    observer.disconnect();
  };
  const observer = new MutationObserver(look);
  observer.observe(document, { childList: true, subtree: true });
}

/** Click the first step of the timeline when it is in the document, and note when it has opened. */
export function clickFirstStep() {
  let clicked = null;
  const look = () => {
    const step = document.querySelector(".step");
    if (!clicked && step) {
      clicked = step.querySelector(".step-seq").textContent;
      step.click();
    }
    const open = document.querySelector('.step[aria-expanded="true"] .step-seq');
    if (!open || open.textContent !== clicked) return;
    window.firstSeenMs = performance.now();
    observer.disconnect();
  };
  const observer = new MutationObserver(look);
  observer.observe(document, { attributes: true, childList: true, subtree: true });
}

/** Note the numbers of the steps that arrive after the first connection, and when the last of them is shown. */
export function noteStreamedSteps(last) {
  window.stream = { opened: 0, seqs: [] };
  const { stream } = window;
  const look = () => {
    if (stream.caughtUpAt !== undefined || stream.seqs.at(-1) !== last) return;
    const rows = document.querySelectorAll(".step .step-seq");
    if ([...rows].some((row) => Number(row.textContent) === last)) stream.caughtUpAt = Date.now();
  };
  new MutationObserver(look).observe(document, { childList: true, subtree: true, characterData: true });
  const Native = window.EventSource;
  window.EventSource = class extends Native {
    constructor(address) {
      super(address);
      this.addEventListener("open", () => {
        stream.opened += 1;
      });
      this.addEventListener("step", (event) => {
        stream.seqs.push(Number(event.lastEventId.split(":").at(-1)));
        look();
      });
    }
  };
}

/**
 * Scroll from the first row downwards for some frames. Returns the 95th percentiles of the time between two frames and
 * of the work of the main thread for one, in milliseconds, and the largest number of elements. Throws if the browser
 * stops to draw.
 */
export async function scrollFrames(page, selector, frames, pixels) {
  await page.bringToFront();
  const seen = await page.evaluate(
    async ({ selector, frames, pixels }) => {
      const isScroller = (one) =>
        one.scrollHeight > one.clientHeight && /auto|scroll/.test(getComputedStyle(one).overflowY);
      let scroller = document.querySelector(selector);
      while (scroller && !isScroller(scroller)) scroller = scroller.parentElement;
      if (!scroller) throw new Error(`nothing around ${selector} scrolls`);
      const times = [];
      const work = [];
      let nodes = 0;
      const frame = () =>
        new Promise((resolve, reject) => {
          const late = setTimeout(() => reject(new Error(`no frame in 5 s after ${times.length} frames`)), 5_000);
          requestAnimationFrame((at) => {
            clearTimeout(late);
            const began = performance.now();
            // The message arrives after the style, the layout and the painting of this frame.
            const after = new MessageChannel();
            after.port1.onmessage = () => {
              work.push(performance.now() - began);
              after.port1.close();
              resolve();
            };
            times.push(at);
            scroller.scrollTop += pixels;
            after.port2.postMessage(null);
          });
        });
      for (let at = 0; at < frames; at += 1) {
        await frame();
        nodes = Math.max(nodes, document.getElementsByTagName("*").length);
      }
      if (scroller.scrollTop < frames * pixels * 0.9) throw new Error(`scrolled only to ${scroller.scrollTop}`);
      return { deltas: times.slice(1).map((at, nth) => at - times[nth]), work, nodes };
    },
    { selector, frames, pixels },
  );
  return { frameMs: percentile(seen.deltas), workMs: percentile(seen.work), nodes: seen.nodes };
}

function percentile(values) {
  return values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(0.95 * values.length))];
}
