/** Pages in a real Chromium. */
import type { BrowserContextOptions, Page } from 'playwright-core';
import { onTestFinished } from 'vitest';
import { CHROMIUM, GET_CHROMIUM, launchChromium } from '../../bench/support/chromium.ts';

/** Whether tests skip what needs Chromium: `test.skipIf(NO_BROWSER)`. In CI they fail instead. */
export const NO_BROWSER: boolean = CHROMIUM === undefined && process.env['CI'] === undefined;
if (CHROMIUM === undefined)
  console.warn(`There is no Chromium, so browser tests cannot run. ${GET_CHROMIUM}`);

/** What a page shows and has thrown. */
export interface OpenedPage {
  readonly page: Page;
  /** Uncaught errors, and what was written to the console as an error, such as a violation of the content policy. */
  readonly errors: string[];
}

/** Opens an empty page in a browser of its own, until the running test has finished. */
export async function openPage(options: BrowserContextOptions = {}): Promise<OpenedPage> {
  const browser = await launchChromium();
  onTestFinished(() => browser.close());
  const page = await browser.newPage(options);
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error') errors.push(message.text());
  });
  return { page, errors };
}
