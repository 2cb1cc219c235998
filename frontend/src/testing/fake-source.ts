/** The browser's side of an event stream. Tests send events through it. */
export class FakeSource {
  onopen: (() => void) | null = null;
  onerror: (() => void) | null = null;
  readyState = 0;
  closed = false;
  readonly #listeners = new Map<string, (message: { data: string }) => void>();

  constructor(readonly address: string) {}

  get cursor(): string {
    return new URL(this.address, "http://page").searchParams.get("cursor") ?? "";
  }

  addEventListener(name: string, listener: (message: { data: string }) => void): void {
    this.#listeners.set(name, listener);
  }

  close(): void {
    this.closed = true;
    this.readyState = 2;
  }

  open(): void {
    this.readyState = 1;
    this.onopen?.();
  }

  send(name: string, data: unknown): void {
    this.#listeners.get(name)?.({ data: typeof data === "string" ? data : JSON.stringify(data) });
  }

  /** `final` means that the browser does not reconnect. */
  fail(final: boolean): void {
    this.readyState = final ? 2 : 0;
    this.onerror?.();
  }

  asEventSource(): EventSource {
    return this as unknown as EventSource;
  }
}
