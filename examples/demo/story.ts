/** What the demo prints: steps with the time since the start, and tables. Colour only on a terminal. */
import { styleText } from 'node:util';

type Style = Parameters<typeof styleText>[0];

const COLOUR = process.stdout.isTTY && !process.env['NO_COLOR'] && process.env['TERM'] !== 'dumb';

function paint(style: Style, text: string): string {
  return COLOUR ? styleText(style, text) : text;
}

/** A story on the standard output. */
export class Story {
  #start: number | undefined;

  /** Time counts from here. */
  begin(): void {
    this.#start = performance.now();
  }

  title(text: string): void {
    console.log(`\n${paint('bold', text)}`);
  }

  /** Something happened. */
  step(text: string, style: Style = 'reset'): void {
    console.log(`${this.#clock()}  ${paint(style, text)}`);
  }

  /** What the demo waits for now, and details of a step. */
  detail(text: string): void {
    console.log(paint('dim', `${' '.repeat(9)}  ${text}`));
  }

  /** Something to copy. */
  command(text: string): void {
    console.log(`\n    ${text}\n`);
  }

  /** The last word. */
  end(text: string): void {
    console.log(text);
  }

  /** The first row is the heading. */
  table(rows: readonly (readonly string[])[]): void {
    const widths = (rows[0] ?? []).map((_, column) =>
      Math.max(...rows.map((row) => (row[column] ?? '').length)),
    );
    for (const [index, row] of rows.entries()) {
      const line = row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('   ');
      console.log(paint(index === 0 ? 'dim' : 'reset', `  ${line.trimEnd()}`));
    }
  }

  check(passed: boolean, text: string): void {
    console.log(`  ${passed ? paint('green', 'ok  ') : paint('red', 'FAIL')}  ${text}`);
  }

  #clock(): string {
    if (this.#start === undefined) return paint('dim', '   set-up');
    return paint('cyan', `${((performance.now() - this.#start) / 1_000).toFixed(1).padStart(7)} s`);
  }
}

/** The time of day of an ISO 8601 time, in UTC. */
export function timeOfDay(at: string | null): string {
  return at === null ? '' : at.slice(11, 23);
}
