/** Values as text for people. */
import type { ApprovalNeeds } from '../contract/views.ts';
import { visible } from '../session/visible.ts';

export { visible };

/** JSON for reading; a text stands for itself. */
export function readable(value: unknown): string {
  return visible(typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? ''));
}

const UNITS = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
] as const;

/** A time span in its two largest units: `1 h 12 min`. */
export function span(ms: number): string {
  let seconds = Math.max(0, Math.round(ms / 1_000));
  const parts: string[] = [];
  for (const [unit, size] of UNITS) {
    const count = Math.floor(seconds / size);
    if (count > 0 || (unit === 's' && parts.length === 0)) parts.push(`${count} ${unit}`);
    else if (parts.length > 0) break;
    seconds -= count * size;
    if (parts.length === 2 || (parts.length === 1 && unit === 'min')) break;
  }
  return parts.join(' ');
}

/** `1 call`, `2 calls`. */
export function counted(count: number, noun: string): string {
  return `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`;
}

/** Who has approved a call, and who else must. */
export function needsInWords({ people, given, notBy, verified }: ApprovalNeeds): string {
  const approved = given.map(({ by }) => by);
  const others = notBy.filter((name) => !approved.includes(name));
  const by = approved.length === 0 ? '' : `: ${approved.join(', ')}`;
  const who = verified ? ' Only verified names count.' : '';
  const not = others.length === 0 ? '' : ` Not by ${others.join(', ')}, who shaped what is asked.`;
  return visible(`${given.length} of ${people}${by}. ${people - given.length} more needed.${not}${who}`);
}

/** Dollars: four decimals below ten cents, otherwise two. */
export function dollars(usd: number): string {
  return `$${usd.toFixed(usd !== 0 && usd < 0.1 ? 4 : 2)}`;
}
