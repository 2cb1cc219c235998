/** The browser's end of an event stream, for tests to speak through. */
export class FakeSource {
  onopen: (() => void) | null = null;
  onerror: (() => void) | null = null;
  readyState = 0;
  closed = false;
  readonly #hearers = new Map<string, (message: { data: string }) => void>();

  constructor(readonly address: string) {}

  get cursor(): string {
    return new URL(this.address, "http://page").searchParams.get("cursor") ?? "";
  }

  addEventListener(name: string, hear: (message: { data: string }) => void): void {
    this.#hearers.set(name, hear);
  }

  close(): void {
    this.closed = true;
    this.readyState = 2;
  }

  opens(): void {
    this.readyState = 1;
    this.onopen?.();
  }

  says(name: string, data: unknown): void {
    this.#hearers.get(name)?.({ data: typeof data === "string" ? data : JSON.stringify(data) });
  }

  /** `final`: the browser does not try again by itself. */
  breaks(final: boolean): void {
    this.readyState = final ? 2 : 0;
    this.onerror?.();
  }

  asEventSource(): EventSource {
    return this as unknown as EventSource;
  }
}
