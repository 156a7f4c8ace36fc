// Browsers start no worker from a page that was opened as a file: the search then runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const outer = this;
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      const inner = this.frame.contentWindow;
      this.ready = new Promise((resolve) => {
        inner.document.open();
        inner.document.write("<!doctype html><title>search</title>");
        inner.document.close();
        const add = (source) => new Promise((done, failed) => {
          const script = inner.document.createElement("script");
          script.src = source;
          script.onload = done;
          script.onerror = failed;
          inner.document.head.appendChild(script);
        });
        inner.importScripts = (...sources) => sources.reduce((before, s) => before.then(() => add(s)), Promise.resolve());
        inner.postMessage = (data) => {
          const event = new MessageEvent("message", { data });
          outer.dispatchEvent(event);
          if (outer.onmessage) outer.onmessage(event);
        };
        add(url).then(resolve);
      });
    }
    postMessage(data) {
      const inner = this.frame.contentWindow;
      this.ready.then(() => inner.dispatchEvent(new inner.MessageEvent("message", { data })));
    }
    terminate() { this.frame.remove(); }
  };
}
