/** What goes over the wire between the payments service and its clients. */
import { z } from 'zod';

/** An order and the charge that paid for it. */
export interface Order {
  readonly id: string;
  readonly customer: string;
  readonly item: string;
  readonly cents: number;
  readonly chargeId: string;
  /** ISO 8601. */
  readonly placedAt: string;
}

export interface RefundInput {
  readonly chargeId: string;
  readonly cents: number;
  readonly reason: string;
}

export interface EmailInput {
  readonly to: string;
  readonly subject: string;
  readonly body: string;
}

/** What the service gives an effect that has landed. */
export interface Receipt {
  readonly id: string;
  /** ISO 8601. */
  readonly at: string;
}

export type Refund = RefundInput & Receipt;
export type Email = EmailInput & Receipt;

/** One line of the ledger: an effect that has happened. */
export type Row = Receipt & { readonly key: string | null } & (
    | { readonly kind: 'refund'; readonly args: RefundInput }
    | { readonly kind: 'email'; readonly args: EmailInput }
  );

/** The collections that take effects. */
export type Collection = 'refunds' | 'emails';

/** A fault for the next `times` (default 1) POSTs to a collection. */
export interface ServiceFault {
  readonly on: Collection;
  /** Before or after the ledger row is on disk: nothing has happened yet, or all of it has. */
  readonly when: 'before-write' | 'after-write';
  /**
   * `hang`: the request is held until it is released, or for `delayMs`; then it goes on as if nothing had been,
   * whether or not its client is still there. `drop-connection`: the socket is destroyed. `status`: an error.
   */
  readonly do: 'hang' | 'drop-connection' | 'status';
  /** The HTTP status of `status`; default 503. */
  readonly status?: number | undefined;
  readonly times?: number | undefined;
  /** Milliseconds before a connection is dropped or a status is sent; how long a `hang` lasts by itself. */
  readonly delayMs?: number | undefined;
}

/** A request that a `hang` holds. `row` is the id of its ledger row: with `after-write` the effect has landed. */
export interface Held {
  readonly on: Collection;
  readonly when: ServiceFault['when'];
  readonly key: string | null;
  readonly row: string | null;
}

export const refundInput: z.ZodType<RefundInput> = z.strictObject({
  chargeId: z.string().min(1),
  cents: z.number().int().positive(),
  reason: z.string(),
});

export const emailInput: z.ZodType<EmailInput> = z.strictObject({
  to: z.email(),
  subject: z.string().min(1),
  body: z.string(),
});

export const serviceFault: z.ZodType<ServiceFault> = z.strictObject({
  on: z.enum(['refunds', 'emails']),
  when: z.enum(['before-write', 'after-write']),
  do: z.enum(['hang', 'drop-connection', 'status']),
  status: z.number().int().min(400).max(599).optional(),
  times: z.number().int().positive().optional(),
  delayMs: z.number().nonnegative().optional(),
});

const receipt = { id: z.string(), at: z.string() };

export const order: z.ZodType<Order> = z.object({
  id: z.string(),
  customer: z.string(),
  item: z.string(),
  cents: z.number(),
  chargeId: z.string(),
  placedAt: z.string(),
});

export const refund: z.ZodType<Refund> = z.object({
  ...receipt,
  chargeId: z.string(),
  cents: z.number(),
  reason: z.string(),
});

export const email: z.ZodType<Email> = z.object({
  ...receipt,
  to: z.string(),
  subject: z.string(),
  body: z.string(),
});
