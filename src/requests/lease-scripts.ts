/**
 * KEYS lease. ARGV token, ms. Extends the lease to `ms` from now and returns 1 if the token still owns it, else returns
 * 0.
 */
export const RENEW = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
`;

/**
 * KEYS lease. ARGV token. Deletes the lease only if the token owns it, so that a late release cannot end the lease of
 * another owner.
 */
export const RELEASE = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
`;
