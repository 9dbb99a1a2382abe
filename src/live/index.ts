export { RedisLiveChannel } from './redis-live-channel.ts';
