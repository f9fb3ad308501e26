// Search without a server: browsers start no worker from a file, so a hidden frame takes its place.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.addEventListener("message", event => this.onmessage && this.onmessage(event));
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      const inner = this.frame.contentWindow;
      inner.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }));
      const load = address => new Promise((done, failed) => {
        const script = inner.document.createElement("script");
        Object.assign(script, { src: address, onload: done, onerror: failed });
        inner.document.body.appendChild(script);
      });
      inner.importScripts = (...urls) => urls.reduce((before, one) => before.then(() => load(one)), Promise.resolve());
      this.ready = load(String(new URL(url, location.href)));
    }
    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
