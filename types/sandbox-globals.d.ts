// The globals that Temporal's workflow sandbox adds to the language: deterministic, and nothing else exists.
// Only `tsconfig.workflows.json` reads this file; elsewhere Node's own types apply.

interface TextEncoder {
  encode(input?: string): Uint8Array<ArrayBuffer>;
}
declare const TextEncoder: { new (): TextEncoder };

interface TextDecoder {
  decode(input?: Uint8Array | ArrayBuffer): string;
}
declare const TextDecoder: { new (label?: string, options?: { fatal?: boolean }): TextDecoder };

declare function setTimeout(callback: () => void, ms: number): number;
declare function clearTimeout(handle: number): void;
