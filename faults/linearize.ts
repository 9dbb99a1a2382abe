/**
 * Linearizability of one idempotency key: is there an order of the sessions' claims and the ledger's rows that agrees
 * with the clock and that one effect explains?
 *
 * The object is a register that is empty until its effect lands and holds its receipt ever after. The search is
 * Wing and Gong's: take any operation that no other one precedes in time, let it happen, go on.
 */

/** A dispatch as its session reports it. Times are milliseconds since 1970. */
export interface Claim {
  readonly who: string;
  readonly invokedAt: number;
  /** `null`: its outcome was never recorded, so it may happen at any time after it was invoked. */
  readonly respondedAt: number | null;
  /** `landed` with a receipt, certainly `absent`, or `open`: nothing is claimed. */
  readonly claim:
    | { readonly kind: 'landed'; readonly receipt: string }
    | { readonly kind: 'absent' | 'open' };
}

/** A row of the ledger. */
export interface LedgerRow {
  readonly id: string;
  readonly at: number;
}

interface Operation {
  readonly from: number;
  readonly to: number;
  readonly text: string;
  /** The register after the operation, or `undefined` if it cannot happen. `null` is the empty register. */
  readonly apply: (register: string | null) => string | null | undefined;
}

/** Clocks of the service and of the server are read in whole milliseconds. */
const TICK_MS = 2;

/** Why the history of a key cannot be explained by one effect, or `null` when it can. */
export function unexplained(claims: readonly Claim[], rows: readonly LedgerRow[]): string | null {
  for (const row of rows) {
    const asked = claims.some(
      ({ invokedAt, claim }) => claim.kind !== 'absent' && invokedAt <= row.at + TICK_MS,
    );
    if (!asked) return `${row.id} landed, and no dispatch that may have landed was out by then`;
  }
  const operations = [...rows.map(rowOperation), ...claims.map(claimOperation)];
  if (operations.length > 24)
    return `${operations.length} operations on one key are more than one effect explains`;
  const seen = new Set<string>();
  if (search(operations, 0, null, seen)) return null;
  return `no order of these is one effect: ${operations.map(({ text }) => text).join('; ')}`;
}

/** `done` is a set of operations as bits. */
function search(
  operations: readonly Operation[],
  done: number,
  register: string | null,
  seen: Set<string>,
): boolean {
  if (done === 2 ** operations.length - 1) return true;
  const state = `${done}:${register}`;
  if (seen.has(state)) return false;
  seen.add(state);
  const open = operations
    .map((operation, i) => ({ operation, i }))
    .filter(({ i }) => (done & (1 << i)) === 0);
  const firstEnd = Math.min(...open.map(({ operation }) => operation.to));
  return open.some(({ operation, i }) => {
    if (operation.from > firstEnd + TICK_MS) return false;
    const next = operation.apply(register);
    return next !== undefined && search(operations, done | (1 << i), next, seen);
  });
}

function rowOperation({ id, at }: LedgerRow): Operation {
  return {
    from: at,
    to: at,
    text: `row ${id} at ${new Date(at).toISOString()}`,
    apply: (register) => (register === null ? id : undefined),
  };
}

function claimOperation({ who, invokedAt, respondedAt, claim }: Claim): Operation {
  const to = respondedAt ?? Number.POSITIVE_INFINITY;
  const end = respondedAt === null ? 'never' : new Date(respondedAt).toISOString();
  const said = claim.kind === 'landed' ? `landed as ${claim.receipt}` : claim.kind;
  const apply: Operation['apply'] = (register) => {
    if (claim.kind === 'landed') return register === claim.receipt ? register : undefined;
    if (claim.kind === 'absent') return register === null ? null : undefined;
    return register;
  };
  return {
    from: invokedAt,
    to,
    text: `${who} said ${said} (${new Date(invokedAt).toISOString()} to ${end})`,
    apply,
  };
}
