/** Encodes the state and metadata of archived checkpoints with the payload codecs of the sessions. */
import type { DataConverter, PayloadCodec } from '@temporalio/common';
import { PerdureError } from '../contract/errors.ts';
import { decodeBytes, encodeBytes } from '../temporal/payloads.ts';

/** The prefix of an encoded text. A text without it is JSON. */
const ENCODED = 'payload:';
const PLAIN = Buffer.from('json/plain');

/** Options of an archive. */
export interface ArchiveOptions {
  /** Its payload codecs encode the states and metadata in the archive. Use the converter of the sessions. */
  dataConverter?: DataConverter | undefined;
}

/** The thread that a record belongs to. */
interface Place {
  namespace: string;
  sessionId: string;
}

export class RowCodec {
  readonly #codecs: PayloadCodec[];

  constructor({ dataConverter }: ArchiveOptions) {
    this.#codecs = dataConverter?.payloadCodecs ?? [];
  }

  async encode({ namespace, sessionId }: Place, json: string): Promise<string> {
    if (this.#codecs.length === 0) return json;
    const context = { type: 'workflow', namespace, workflowId: sessionId } as const;
    const payload = { metadata: { encoding: PLAIN }, data: Buffer.from(json) };
    const encoded = await encodeBytes(this.#codecs, payload, context);
    return ENCODED + Buffer.from(encoded).toString('base64');
  }

  /** @throws PerdureError `ENCRYPTED` without the codec; what the codec throws */
  async decode({ namespace, sessionId }: Place, stored: string): Promise<string> {
    if (!stored.startsWith(ENCODED)) return stored;
    const context = { type: 'workflow', namespace, workflowId: sessionId } as const;
    const bytes = Buffer.from(stored.slice(ENCODED.length), 'base64');
    const { metadata, data } = await decodeBytes(this.#codecs, bytes, context);
    if (PLAIN.equals(metadata?.['encoding'] ?? Buffer.alloc(0))) return Buffer.from(data ?? []).toString();
    throw new PerdureError(
      'ENCRYPTED',
      'The archive is encrypted, and has no codec here. Open it with the dataConverter of the sessions; for commands: --data-converter <module>',
    );
  }
}
