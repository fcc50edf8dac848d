-- 70_privileges.sql: nobody but the owner has any right until it is granted
-- by grant_capability().

REVOKE ALL ON SCHEMA evidence FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA evidence FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA evidence FROM PUBLIC;
REVOKE ALL ON ALL ROUTINES IN SCHEMA evidence FROM PUBLIC;
