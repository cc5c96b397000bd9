-- SPDX-License-Identifier: Apache-2.0
-- A guard for PostgreSQL: the largest fencing token seen of each resource, and one function that compares and raises.
-- Once for a database:  psql -1 -v ON_ERROR_STOP=1 -f postgresql.sql
-- postgresql_use.sql is how it is used; docs/fencing.md says why.

create table fence (
  resource text primary key,
  token bigint not null check (token between 1 and 9007199254740991)
);

-- Step 1, in a transaction of its own; and again as the first statement of every transaction that writes (step 3). The
-- row that it locks stays locked until the commit, so nobody can raise between the comparison and the write, and who
-- raises waits for a write that has passed.
-- An exception and not `false`: it takes the whole transaction with it, whether or not the caller looks. But for one with
-- savepoints: what is rolled back to one behind the refusal goes on as if nothing had been refused.
create function fence_raise(guarded text, mine bigint) returns bigint language plpgsql as $$
declare
  largest bigint;
begin
  -- For this transaction: a fence that a crash forgets lets the stale write in. `remote_apply` is more still.
  if current_setting('synchronous_commit') <> 'remote_apply' then
    perform set_config('synchronous_commit', 'on', true);
  end if;
  if mine is null or mine not between 1 and 9007199254740991 then
    raise exception 'not a fencing token: %', coalesce(mine::text, 'null') using
      errcode = 'invalid_parameter_value',
      hint = 'A token is a number from 1 to 9007199254740991; pass HOLDFAST_TOKEN or lease.token() as it is.';
  end if;
  insert into fence as seen (resource, token) values (guarded, mine)
    on conflict (resource) do update set token = excluded.token where seen.token <= excluded.token;
  if not found then
    select token into strict largest from fence where resource = guarded;
    raise exception 'stale fencing token %, current %', mine, largest using
      errcode = 'HF001',
      detail = format('A newer holder has been at %s.', guarded),
      hint = format('Stop; or acquire again with min_fence = %s, and begin with the raise.', largest);
  end if;
  return mine;
end
$$;
