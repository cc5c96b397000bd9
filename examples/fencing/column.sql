-- SPDX-License-Identifier: Apache-2.0
-- The guard as a column of the row that it guards, for one row and any SQL database: an UPDATE compares and writes in
-- one step. Once:
--   alter table account add column fence bigint not null default 0 check (fence between 0 and 9007199254740991);

-- 1. raise, and commit it. No row changed: somebody newer was here (or there is no such account). Stop.
update account set fence = :token where id = 7 and fence <= :token;

-- 2. read
select balance from account where id = 7;

-- 3. write. No row changed: you have been overtaken meanwhile. Stop; `fence` is the current token.
update account set balance = :balance, fence = :token where id = 7 and fence <= :token;
