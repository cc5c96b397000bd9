-- SPDX-License-Identifier: Apache-2.0
-- Raise, read, write with postgresql.sql:
--   holdfast run account:7 -- sh -c 'psql -v ON_ERROR_STOP=1 -v token="$HOLDFAST_TOKEN" -f postgresql_use.sql'

-- 1. raise, and commit it. Refused: somebody newer was here.
select fence_raise('account:7', :'token');

-- 2. read, in a statement after the raise.
select balance from account where id = 7 \gset

-- 3. write. Whatever stands in this transaction is written under the token, or not at all.
begin;
select fence_raise('account:7', :'token');
update account set balance = :balance - 30 where id = 7;
commit;
