/** One seed, so that a build does not fail by luck; others are tried with PERDURE_SEED. */
import fc from 'fast-check';

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(process.env['PERDURE_SEED'] ?? 1) });
