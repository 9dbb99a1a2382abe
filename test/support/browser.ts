/** Pages in a real Chromium: the machine's own, driven by Playwright. */
import { type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { onTestFinished } from 'vitest';
import { onPath } from '../../bench/support/on-path.ts';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'];

/** The path of Chromium: `CHROMIUM_PATH`, or the first one on `PATH`. */
const PATH_OF_CHROMIUM = process.env['CHROMIUM_PATH'] || onPath(NAMES);
const HOW = 'Install chromium (Debian: apt-get install chromium), or set CHROMIUM_PATH';

/** Whether tests skip what needs Chromium: `test.skipIf(NO_BROWSER)`. In CI they fail instead. */
export const NO_BROWSER: boolean = PATH_OF_CHROMIUM === undefined && process.env['CI'] === undefined;
if (PATH_OF_CHROMIUM === undefined) console.warn(`There is no Chromium, so browser tests cannot run. ${HOW}`);

/** What a page shows and has thrown. */
export interface OpenedPage {
  readonly page: Page;
  /** Uncaught errors, and what was written to the console as an error, such as a violation of the content policy. */
  readonly errors: string[];
}

/** Opens an empty page in a browser of its own, until the running test has finished. */
export async function openPage(options: BrowserContextOptions = {}): Promise<OpenedPage> {
  if (PATH_OF_CHROMIUM === undefined) throw new Error(`There is no Chromium. ${HOW}`);
  const browser = await chromium.launch({
    executablePath: PATH_OF_CHROMIUM,
    // Containers run tests as root, with a small /dev/shm.
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
  });
  onTestFinished(() => browser.close());
  const page = await browser.newPage(options);
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error') errors.push(message.text());
  });
  return { page, errors };
}
