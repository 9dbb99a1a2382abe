/** Control of a payments service for tests and demonstrations: faults, and the whole ledger. No tool may use it. */
import type { Held, Row, ServiceFault } from './protocol.ts';

export interface PaymentsControl {
  /** Arms a fault for the next `times` POSTs to a collection; several add up, the earliest strikes first. */
  arm(fault: ServiceFault): Promise<void>;
  /** Forgets the faults that have not struck yet. */
  disarm(): Promise<void>;
  /**
   * Resolves as soon as `min` (default 1) requests are held by a `hang`. With `after-write` this is the moment
   * when the effect has landed and the reply has not come.
   */
  held(min?: number, signal?: AbortSignal): Promise<readonly Held[]>;
  /** Lets all held requests go on; resolves with their number. */
  release(): Promise<number>;
  /** All refunds in the ledger, oldest first. */
  refunds(): Promise<readonly Extract<Row, { kind: 'refund' }>[]>;
  /** All e-mails in the ledger, oldest first. */
  emails(): Promise<readonly Extract<Row, { kind: 'email' }>[]>;
}

/** Control over the service at `url`. */
export function createPaymentsControl(url: string): PaymentsControl {
  async function ask<Answer>(method: string, path: string, init: RequestInit = {}): Promise<Answer> {
    const response = await fetch(`${url}${path}`, { ...init, method, headers: { connection: 'close' } });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as Answer;
  }
  return {
    arm: async (fault) => void (await ask('POST', '/faults', { body: JSON.stringify(fault) })),
    disarm: async () => void (await ask('DELETE', '/faults')),
    held: (min = 1, signal) => ask('GET', `/faults/held?min=${min}`, signal === undefined ? {} : { signal }),
    release: async () => (await ask<{ released: number }>('POST', '/faults/release')).released,
    refunds: () => ask('GET', '/refunds'),
    emails: () => ask('GET', '/emails'),
  };
}
