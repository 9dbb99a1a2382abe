import { expect, test } from 'vitest';
import { NO_BROWSER, openPage } from '../support/browser.ts';

test.skipIf(NO_BROWSER)('a page opens in Chromium, and its errors are seen', async () => {
  const { page, errors } = await openPage({ colorScheme: 'dark', viewport: { width: 360, height: 640 } });
  await page.setContent('<h1>Hello</h1><script>setTimeout(() => { throw new Error("boom") })</script>');
  expect(await page.textContent('h1')).toBe('Hello');
  expect(await page.evaluate('[innerWidth, matchMedia("(prefers-color-scheme: dark)").matches]')).toEqual([
    360,
    true,
  ]);
  await expect.poll(() => errors).toEqual(['Error: boom']);
});
