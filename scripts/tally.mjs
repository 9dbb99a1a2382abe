// Counts a Vitest JSON report and ends with the line `N passed, N failed`. A file that could not be loaded has no
// failed test of its own, and counts as one.
import { readFileSync } from 'node:fs';

const [path = ''] = process.argv.slice(2);
/** @typedef {{ title: string, status: string }} Assertion */
/** @typedef {{ name: string, status: string, message: string, assertionResults: Assertion[] }} FileResult */
const report = /** @type {{ success: boolean, testResults: FileResult[] }} */ (
  JSON.parse(readFileSync(path, 'utf8'))
);

let passed = 0;
let failed = 0;
let skipped = 0;
for (const file of report.testResults) {
  const before = failed;
  for (const { status } of file.assertionResults) {
    if (status === 'passed') passed += 1;
    else if (status === 'failed') failed += 1;
    else skipped += 1;
  }
  if (file.status === 'failed' && failed === before) failed += 1;
}
// Something outside any test (an unhandled rejection, an empty run) fails a run whose tests all pass.
if ((!report.success || passed === 0) && failed === 0) failed = 1;

console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
process.exitCode = failed > 0 ? 1 : 0;
