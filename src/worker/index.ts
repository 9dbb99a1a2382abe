export { createWorker, type SessionWorkerOptions } from './create-worker.ts';
export type { DeploymentOptions } from './deployment.ts';
export { modelsFromEnvironment } from './models.ts';
export { openConnection } from './open-connection.ts';
export { PerdurePlugin, type PerdurePluginOptions } from './plugin.ts';
export { workflowBundle } from './workflow-bundle.ts';
