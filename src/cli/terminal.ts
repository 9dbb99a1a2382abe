/** All output of the command line. */
import { styleText } from 'node:util';
import { visible } from '../session/visible.ts';

/** How long work may take before a spinner shows, in milliseconds. */
const SPIN_AFTER_MS = 200;

type Format = Parameters<typeof styleText>[0];

/**
 * Results go to standard output, as text or JSON. Errors and progress go to standard error. With JSON there is no
 * progress, so that standard error holds only the error.
 */
export class Terminal {
  /** Whether results are JSON. Known after the arguments were read. */
  json = false;
  /** Whether a person watches the results. */
  readonly live: boolean = Boolean(process.stdout.isTTY);

  /** Styled text, if standard output is a terminal. */
  style(format: Format, text: string): string {
    return styleText(format, text, { stream: process.stdout });
  }

  /** Styled text, if standard error is a terminal. */
  styleError(format: Format, text: string): string {
    return styleText(format, text, { stream: process.stderr });
  }

  /** The one result of a verb. */
  result(value: object, human: () => string): void {
    this.write(this.json ? `${JSON.stringify(value, null, 2)}\n` : `${human()}\n`);
  }

  /** One of several results. */
  item(value: object, human: () => string | null): void {
    const text = this.json ? JSON.stringify(value) : human();
    if (text !== null) this.write(`${text}\n`);
  }

  /** Raw text to standard output. */
  write(text: string): void {
    process.stdout.write(text);
  }

  /** A line about progress. */
  progress(text: string): void {
    if (!this.json) process.stderr.write(`${this.styleError('dim', text)}\n`);
  }

  /** A problem that does not stop the verb. */
  warn(text: string): void {
    if (!this.json) process.stderr.write(`${this.styleError('yellow', 'warning')} ${text}\n`);
  }

  /** Lines of an error. */
  error(text: string): void {
    process.stderr.write(`${text}\n`);
  }

  /** Shows that work continues: a spinner on a terminal, otherwise its lines. */
  async wait<T>(text: string, work: (tell: (line: string) => void) => Promise<T>): Promise<T> {
    if (this.json || !process.stderr.isTTY) return work((line) => this.progress(line));
    const { default: yoctoSpinner } = await import('yocto-spinner');
    const spinner = yoctoSpinner({ text, stream: process.stderr, handleSignals: false });
    // Quick work shows no spinner.
    const later = setTimeout(() => spinner.start(), SPIN_AFTER_MS);
    // An interrupt must restore the cursor.
    const stop = (): void => void spinner.stop();
    process.once('exit', stop);
    try {
      return await work((line) => {
        spinner.text = clean(line);
      });
    } finally {
      clearTimeout(later);
      process.off('exit', stop);
      spinner.stop();
    }
  }
}

/** Makes a text safe for a terminal: hidden characters could make a call look like another one. */
export const clean: (text: string) => string = visible;

/** A value as one line of JSON that is safe for a terminal. */
export function inline(value: unknown, limit: number = Number.POSITIVE_INFINITY): string {
  const text = clean(JSON.stringify(value) ?? 'null');
  return text.length > limit ? `${text.slice(0, limit)}…` : text;
}
