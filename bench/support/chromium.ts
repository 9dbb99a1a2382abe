/** The machine's own Chromium, driven by Playwright. */
import { type Browser, chromium } from 'playwright-core';
import { onPath } from './on-path.ts';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'];

/** The path of Chromium: `CHROMIUM_PATH`, or the first one on `PATH`. */
export const CHROMIUM: string | undefined = process.env['CHROMIUM_PATH'] || onPath(NAMES);
/** What to do when there is none. */
export const GET_CHROMIUM = 'Install chromium (Debian: apt-get install chromium), or set CHROMIUM_PATH';

/** Starts it. @throws Error without one */
export async function launchChromium(): Promise<Browser> {
  if (CHROMIUM === undefined) throw new Error(`There is no Chromium. ${GET_CHROMIUM}`);
  return chromium.launch({
    executablePath: CHROMIUM,
    // Containers run tests as root, with a small /dev/shm.
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
  });
}
