/*-------------------------------------------------------------------------
 *
 * rules.c
 *	  The redaction rules that come with this library, ruleset version 1.
 *
 * Rules are data.  A change here is a new ruleset version, and contracts of
 * older exports keep theirs.  The order matters only where two rules find
 * secrets that begin at the same place: the earlier one gives the name.
 *
 * How patterns are kept linear on hostile text: a repeat is possessive or has
 * an upper bound, look-aheads have upper bounds, and an open repeat is never
 * followed by something that can fail after it was tried at many places.
 *
 * What a value is: quoted text with the escapes of its format, else
 * everything up to a blank or to a separator that introduces another key.  A
 * separator that introduces none belongs to the value, because passwords hold
 * commas and semicolons; rather a character too much than half a secret.
 *
 *-------------------------------------------------------------------------
 */
#include "redact.h"

/* A quote as it stands in text, in JSON inside a string, and in HTML. */
#define QUOTE "(?:\\\\{0,3}[\"'`]|&(?:quot|\\#34|\\#39);)"

/*
 * Between a key and its value: closing quote, sign, blanks.  The other forms
 * are those of configuration files, name="password" value="...", and of
 * calls, setPassword("...").
 */
#define SIGN \
	"(?:" \
	"  " QUOTE "{0,2} [ \\t\\x{a0}]{0,8}" \
	"  (?: :=|=>|->|={1,3}|:(?!//|:)|\\x{ff1a}|\\x{ff1d} )" \
	"  (?:[ \\t\\x{a0}]|\\\\[ ]){0,8}+" \
	"|" \
	"  " QUOTE "?\\s{0,8}(?:,\\s{0,8}|\\s)" QUOTE "?value" QUOTE "?" \
	"  [ \\t]{0,8}[=:][ \\t]{0,8}" \
	"|" \
	"  \\(\\s{0,4}(?=" QUOTE ")" \
	")"

/*
 * A blank instead of a sign.  Only a word of mixed letters and digits is then
 * taken for the secret, since ordinary sentences go on like this as well.
 */
#define BLANK_SIGN "[ \\t]{1,4}(?:(?:is|was)[ ]{1,4})?" MIXED_WORD
#define IS_SIGN "[ ]{1,4}(?:is|was)[ ]{1,4}" MIXED_WORD

#define MIXED_WORD \
	"(?-i:(?=[^\\s]{0,60}[0-9])(?=[^\\s]{0,60}[a-z])" \
	"(?=[^\\s]{0,60}[A-Z]))(?=[^\\s\"'=:/\\\\]{8})"

/* What may stand behind a bare word that is a whole value. */
#define VALUE_END "(?=[\\s\"'`\\\\,;&)\\]}<>.!?]|\\z)"

/* Values that tell a state and are no secret, and values masked already. */
#define NO_SECRET \
	"(?!" QUOTE "?[(<\\[]{0,2}" \
	"  (?:true|false|yes|no|on|off|none|null|nil|undefined|empty|missing" \
	"   |unset|set|unchanged|changed|reset|updated|rotated|revoked|expired" \
	"   |invalid|valid|incorrect|correct|wrong|accepted|rejected|denied" \
	"   |required|optional|enabled|disabled|failed|ok|n/a|unknown|hidden" \
	"   |masked|removed|redacted|must|should|cannot|will|was|not|see|\\*+|-+|x{3,}|string|str|bytes|\\?+)" \
	"  " VALUE_END ")" \
	"(?!\\\\{0,3}[\"'`]?\\[redacted:)" \
	"(?!\\\\{0,3}[\"'`]?\\$\\{[\\w.:-]{1,60}\\})" \
	"(?!\\{\\s{0,4}[\"'}\\\\])"

/*
 * A separator goes on belonging to a bare value unless a key follows it.
 * Keys of several words stand in the connection strings of some drivers.
 */
#define NEXT_KEY \
	"(?:[\\w.%$-]{1,40}[\"']?[ \\t]{0,3}[=:]" \
	"|(?:initial|user|data|connect|connection|integrated|persist|application" \
	"   |max|min|network|packet|trusted|multiple|trust|failover|current" \
	"   |workstation|command|extended|provider|server|load|default|session)" \
	"  (?:[ ][\\w.]{1,40}){1,3}[ ]{0,3}=)"

#define BARE_VALUE \
	"(" \
	"  (?: [^\\s\"'`,;&<>\\\\()\\[\\]{}]++" \
	"    | [,;&](?!\\s|\\z|" NEXT_KEY "|[\"'\\[{])" \
	"    | [\"'`](?=[A-Za-z0-9])" \
	"    | \\\\[ ]" \
	"    | \\\\(?![\"'])(?![nrt](?:\\W|\\z|" NEXT_KEY "))" \
	"    | [()\\[\\]{}>](?![)\\]}>\"'.,;:!?]{0,8}(?:\\s|\\z))" \
	"    | <(?![/!A-Za-z])" \
	"  )++" \
	")"

/* Group 1 is the value without its quotes, whichever form it has. */
#define VALUE \
	"(?|" \
	"  \\\\{1,3}\"((?:[^\"\\\\]|\\\\{3}\"|\\\\(?!\"))*+)" \
	"| \\\\{1,3}'((?:[^'\\\\]|\\\\{3}'|\\\\(?!'))*+)" \
	"| \"\"([^\"]++)\"\"" \
	"| \"((?:[^\"\\\\]++|\\\\(?s:.)?|\"\")*+)" \
	"| '((?:[^'\\\\]++|\\\\(?s:.)?|'')*+)" \
	"| `([^`]++)" \
	"| \\x{201c}([^\\x{201d}]++)" \
	"| &(?:quot|\\#34|\\#39);((?:(?!&(?:quot|\\#34|\\#39);)[^\\r\\n])*+)" \
	"| [|>][-+0-9]{0,2}[ ]{0,4}\\r?\\n[ \\t]{1,40}([^\\r\\n]++)" \
	"| (?<==)\\{((?:[^}]|\\}\\})*+)" \
	"| \\[(?!redacted:)([^\\]\\r\\n]{1,4000}+)\\]" \
	"| " BARE_VALUE \
	")"

/* The rest of a key behind the word: _access_key, Value, 2. */
#define KEY_REST \
	"(?-i:(?:[-_.][A-Za-z0-9]{1,32}|(?<=[a-z])[A-Z][A-Za-z0-9]{0,32}" \
	"|[0-9]{1,4}){0,4}+)"

/* Keys that speak about a secret and do not hold it: token_type, secretId. */
#define NO_META_KEY \
	"(?![\\w.-]{0,60}?(?:[-_.]|(?-i:(?<=[a-z0-9])(?=[A-Z])))" \
	"  (?:ids?|arn|names?|types?|counts?|limits?|size|length|len|ttl|expiry" \
	"   |expires|expiration|expired|lifetime|age|policy|policies|versions?" \
	"   |status|state|url|uri|endpoint|path|file|filename|dir|format|alg" \
	"   |algorithm|bucket|usage|used|hint|changed|updated|created|rotated" \
	"   |at|on|in|date|time|reset|required|enabled|disabled|valid|verified" \
	"   |manager|provider|strength|min|max|history|attempts?|failures?" \
	"   |rotation|fields?|columns?|prefix|issuer|audience|scopes?)" \
	"  (?![\\w.-]))"

/* Whose keys are secret; a key alone may be anything. */
#define KEY_OWNERS(sep) \
	"api" sep "|access" sep "|secret" sep "|private" sep "|signing" sep \
	"|encryption" sep "|master" sep "|account" sep "|shared" sep \
	"|storage" sep "|subscription" sep "|auth" sep "|ssh" sep \
	"|session" sep "|consumer" sep "|service" sep "|app" sep \
	"|application" sep "|client" sep "|license" sep "|hmac" sep \
	"|aes" sep "|root" sep "|admin" sep "|webhook" sep \
	"|host" sep "|function" sep "|ingestion" sep "|write" sep

static const char *const private_key_anchors[] = {
	"private key", "private+key", "private-lines"
};

static const char *const authorization_anchors[] = {
	"authorization", "bearer", "basic "
};

static const char *const cookie_anchors[] = {"cookie"};

static const char *const jwt_anchors[] = {"eyj", ".local.", ".public."};

static const char *const jwk_anchors[] = {"\"kty", "'kty"};

static const char *const aws_key_anchors[] = {"akia", "asia", "abia", "acca"};

static const char *const aws_token_anchors[] = {
	"iqojb3jpz2lu", "fwogzxivyxdz", "fqogzxivyxdz", "aqodyxdz"
};

static const char *const api_token_anchors[] = {
	"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "gldt-",
	"glrt-", "glcbt-", "glptt-", "glft-", "glimt-", "glagent-", "gloas-",
	"glsoat-", "xox", "xapp-", "hooks.slack.com", "aiza", "ya29.", "gocspx-",
	"sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_", "npm_", "pypi-",
	"sk-", "hf_", "dop_v1_", "doo_v1_", "dor_v1_", "sg.", "shpat_", "shpss_",
	"shpca_", "shppa_", "hvs.", "hvb.", "dapi", "lin_api_", "glsa_", "nrak-",
	"pscale_", "pmak-", "sq0", "atatt3", "dckr_pat_", "age-secret-key-",
	"rubygems_", "key-", "eaacedeose0cba", ":aa", "1//0", "gaaaaa", "figd_",
	"ntn_", "sntrys_", "sbp_", "nfp_", "glc_", "akcp", ".atlasv1."
};

static const char *const url_password_anchors[] = {
	"://", "@tcp(", "@unix(", "jdbc:oracle", ":5432:", ":6432:", ":*:"
};

static const char *const url_parameter_anchors[] = {
	"sig=", "signature=", "credential=", "key=", "auth=", "jwt=", "sid=", "session=",
	"ticket=", "hmac=", "code=", "accesskeyid=", "otp=", "samlresponse=",
	"assertion=", "policy="
};

static const char *const password_anchors[] = {
	"passw", "pass-word", "pass_word", "passp", "pass-p", "pass_p", "pass p",
	"passc", "pass-c", "pass_c", "pwd", "psw", "pass=", "pass:", "pass\"",
	"pass'", "pass ", "pass("
};

/* The last letter of each owner is enough to leave most other keys out. */
#define KEY_ANCHORS(sep) \
	"i" sep "key", "s" sep "key", "t" sep "key", "e" sep "key", \
	"g" sep "key", "n" sep "key", "r" sep "key", "d" sep "key", \
	"h" sep "key", "p" sep "key", "c" sep "key", "k" sep "key"

static const char *const secret_anchors[] = {
	"secret", "token", "credential", "creds", "signature", "sessid", "sessionid",
	"session_id", KEY_ANCHORS(""), KEY_ANCHORS("_"), KEY_ANCHORS("-"),
	KEY_ANCHORS("."), KEY_ANCHORS(" ")
};

static const char *const sql_password_anchors[] = {"password", "identified"};

static const char *const xml_secret_anchors[] = {
	"password", "passwd", "pwd", "secret", "token", "key>", "key</key>"
};

static const char *const command_line_anchors[] = {
	"-pass", "-pwd", "-token", "-secret", "-key", "-apikey", "-accesskey",
	"-secretkey", "-privatekey", "curl ", "curl.exe", "wget ",
	"mysql", "mariadb", "sshpass", "securestring", "psexec", "sqlplus",
	"sqlldr", "expdp", "impdp", "rman ", "ldapsearch", "ldapmodify",
	"ldapadd", "ldapdelete", "ldapwhoami", "redis-cli", "docker login",
	"machine ",
	"net user", "net1 user", "net.exe user", "net1.exe user",
	"net.exe\" user", "net1.exe\" user", "net use", "net.exe use",
	"/rp ", "asplaintext"
};

static const char *const one_time_code_anchors[] = {
	"otp", "pin=", "pin:", "pin\"", "pin'", "pin ", "code=", "code:",
	"code\"", "code'", "code ", "cvv", "cvc"
};

#define ANCHORS(list) list, (int) (sizeof(list) / sizeof((list)[0]))

const EvRule ev_builtin_rules[] = {
	/*
	 * PEM blocks: to their END if there is one in front of the next block;
	 * else as far as lines look like base64, headers or blanks.  The breaks
	 * may be real ones or written as \n in JSON.
	 */
	{
		"private-key",
		"(?xi)"
		"-{4,5}[ ]?BEGIN[ +][A-Z0-9 +]{0,40}PRIVATE[ +]KEY(?:[ +]BLOCK)?"
		"[ ]?-{0,5}"
		"(?: (?: (?!-{4,5}[ ]?(?:BEGIN|END)[ +])(?s:.) )*+"
		"    -{4,5}[ ]?END[ +][A-Z0-9 +]{0,40}PRIVATE[ +]KEY(?:[ +]BLOCK)?"
		"    [ ]?-{0,5}"
		"  | (?: (?:\\s|\\\\{1,4}[nrt]|(?<=\\n)[>|\\#*][ ]?){1,8}+"
		"        (?: [A-Za-z0-9-]{1,40}:[ ][^\\r\\n\"\\\\]{0,200}+"
		"          | [A-Za-z0-9+/=]++"
		"              (?=\\s{0,8}(?:[\\r\\n\"']|\\\\{1,4}[nrt]|\\z)"
		"                |\\.\\.|\\x{2026})"
		"          | [A-Za-z0-9+/=]{20,}+ )"
		"    )*+"
		"    (?:(?:\\s|\\\\{1,4}[nrt]){1,8}+-{4,5}[ ]?END[^\\r\\n]{0,60}+)?"
		")"
		"| Private-Lines:[ ]{0,4}[0-9]{1,4}"
		"  ((?:(?:\\s|\\\\{1,4}[nr]){1,4}+[A-Za-z0-9+/=]{8,}+)++)",
		ANCHORS(private_key_anchors), 0
	},

	/* The scheme stays; schemes with parameters go to the end of the line. */
	{
		"authorization",
		"(?xi)(?|"
		"authorization (?:\\\\{0,3}[\"'])? [ \\t]{0,8}[:=][ \\t]{0,8}"
		"(?:\\\\{0,3}[\"'])?"
		"(?|"
		"  (?:digest|aws4-hmac-sha256|signature|oauth|hawk|mac)[ \\t]{1,8}+"
		"  ([^\\r\\n]++)"
		"| (?:bearer|basic|token|apikey|api-key|negotiate|ntlm|key|jwt|dpop"
		"     |sharedkey|sharedaccesssignature|splunk|bot|ssws|gnap)"
		"  [ \\t=:]{1,8}+"
		"  (?!\\[redacted:)([^\\s\"'\\\\<>]++)"
		"| (?!\\[redacted:)(?:[A-Za-z][\\w-]{0,30}[ \\t]{1,8}+)?"
		"  (?=[^\\s\"'\\\\<>]{0,200}[0-9]|[^\\s\"'\\\\<>]{20})"
		"  ([^\\s\"'\\\\<>]{6,}+)"
		")"
		"| (?<![A-Za-z0-9])bearer (?:[ \\t]{1,8}+|[ \\t]{0,2}[:=][ \\t]{0,2})"
		"  (?:\\\\{0,3}[\"'])?"
		"  (?=[A-Za-z._~+/=-]{0,200}[0-9])([A-Za-z0-9._~+/=-]{8,}+)"
		"| (?<![A-Za-z0-9])basic[ ]{1,8}+"
		"  (?=[A-Za-z+/]{0,200}[0-9=])([A-Za-z0-9+/]{12,}+={0,2}) )",
		ANCHORS(authorization_anchors), 0
	},

	/* Each value of a line of cookies; attributes of Set-Cookie stay. */
	{
		"cookie",
		"(?xi)"
		"(?: cookie2?(?:\\\\{0,3}[\"'])?[ \\t]{0,8}[:=][ \\t]{0,8}"
		"    (?:\\\\{0,3}[\"'])?"
		"  | (?!\\A)\\G[ \\t]{0,8};[ \\t]{0,8} )"
		"(?: (?:path|domain|expires|max-age|samesite|priority|version|comment)"
		"    =[^;\\r\\n\"'\\\\]*+ (?:;[ \\t]{0,8}) "
		"  | (?:secure|httponly|partitioned) [ \\t]{0,4} (?:;[ \\t]{0,8}) ){0,9}"
		"(?! (?:path|domain|expires|max-age|samesite|priority|version"
		"     |comment)= )"
		"(?| [^\\s=;,\"'\\\\]{1,200}+ [ ]{0,3}=[ ]{0,3} \\\\{0,3}\"([^\"\\\\;]*+)\\\\{0,3}\""
		"  | [^\\s=;,\"'\\\\]{1,200}+ [ ]{0,3}=[ ]{0,3} (?!\\[redacted:)([^\\s;\"'\\\\]++)"
		"  | (?!\\[redacted:)(?=[^\\s;\"'\\\\]{0,100}[0-9])([^\\s;=\"'\\\\]{8,}+)"
		"    (?!=) )",
		ANCHORS(cookie_anchors), 0
	},

	/*
	 * Signed, unsigned and encrypted forms, two to five parts; single parts,
	 * as the JSON form has them; and the tokens that want to replace these.
	 */
	{
		"jwt",
		"(?x)"
		"(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]{10,}+"
		"  \\.(?:[A-Za-z0-9_-]{8,}+|(?=\\.))(?:\\.[A-Za-z0-9_-]*+){0,3}+"
		"|(?<![A-Za-z0-9/+])eyJ[A-Za-z0-9_-]{24,}+={0,2}+(?![.+/])"
		"|v[1-4]\\.(?:local|public)\\.[A-Za-z0-9_-]{20,}+"
		"  (?:\\.[A-Za-z0-9_-]*+)?",
		ANCHORS(jwt_anchors), EV_RULE_JOIN_LINES
	},

	/* The private parts of a JSON Web Key. */
	{
		"jwk",
		"(?x) (?: \\\\{0,3}\" | ' ) (?:d|p|q|dp|dq|qi|k) (?: \\\\{0,3}\" | ' )"
		"\\s{0,8}:\\s{0,8} (?: \\\\{0,3}\" | ' ) ([A-Za-z0-9_-]{16,}+)",
		ANCHORS(jwk_anchors), 0
	},

	{
		"aws-key",
		"A(?:KIA|SIA|BIA|CCA)(?=[A-Z]{0,15}[0-9])[A-Z0-9]{16}(?![A-Z0-9])",
		ANCHORS(aws_key_anchors), EV_RULE_JOIN_LINES
	},

	{
		"aws-token",
		"(?:IQoJb3JpZ2lu|F[wQ]oGZXIvYXdz|AQoDYXdz)[A-Za-z0-9+/=_%-]{20,}+",
		ANCHORS(aws_token_anchors), EV_RULE_JOIN_LINES
	},

	/* Prefixes that are unmistakable need no key word in front. */
	{
		"api-token",
		"(?x)"
		"gh[pousr]_[A-Za-z0-9]{20,255}+"
		"|github_pat_[A-Za-z0-9_]{20,255}+"
		"|gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas|soat)-[A-Za-z0-9_.-]{16,}+"
		"|xox[a-z](?:\\.xox[a-z])?-[A-Za-z0-9-]{10,}+"
		"|xapp-[A-Za-z0-9-]{10,}+"
		"|hooks\\.slack\\.com/(?:services|workflows|triggers)/"
		"([A-Za-z0-9/_-]{10,}+)"
		"|AIza[A-Za-z0-9_-]{30,}+"
		"|ya29\\.[A-Za-z0-9_-]{20,}+"
		"|GOCSPX-[A-Za-z0-9_-]{20,}+"
		"|(?<![a-z])[sr]k_(?:live|test)_[A-Za-z0-9]{10,}+"
		"|whsec_[A-Za-z0-9+/=]{16,}+"
		"|npm_[A-Za-z0-9]{30,}+"
		"|pypi-[A-Za-z0-9_-]{40,}+"
		"|rubygems_[a-f0-9]{40,}+"
		"|(?<![A-Za-z0-9_-])sk-(?=[A-Za-z_-]{0,60}[0-9])"
		"(?:(?=[a-z0-9_-]{0,60}[A-Z])[A-Za-z0-9_-]{20,}+|[a-z0-9]{32,}+)"
		"|(?<![A-Za-z0-9])hf_[A-Za-z0-9]{30,}+"
		"|do[opr]_v1_[a-f0-9]{40,}+"
		"|SG\\.[A-Za-z0-9_-]{16,}+\\.[A-Za-z0-9_-]{16,}+"
		"|shp(?:at|ss|ca|pa)_[a-fA-F0-9]{30,}+"
		"|hv[sb]\\.[A-Za-z0-9_-]{20,}+"
		"|(?<![A-Za-z0-9])dapi[a-f0-9]{32}(?:-[0-9])?"
		"|lin_api_[A-Za-z0-9]{30,}+"
		"|glsa_[A-Za-z0-9_]{30,}+"
		"|NRAK-[A-Z0-9]{20,}+"
		"|pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{20,}+"
		"|PMAK-[a-f0-9-]{30,}+"
		"|sq0[a-z]{3}-[A-Za-z0-9_-]{20,}+"
		"|ATATT3[A-Za-z0-9_=-]{30,}+"
		"|dckr_pat_[A-Za-z0-9_-]{20,}+"
		"|AGE-SECRET-KEY-1[A-Z0-9]{40,}+"
		"|(?<![A-Za-z0-9])key-[a-f0-9]{32}(?![a-f0-9])"
		"|EAACEdEose0cBA[A-Za-z0-9]{10,}+"
		"|(?<![0-9])[0-9]{8,10}:AA[A-Za-z0-9_-]{32,}+"
		"|(?<![0-9A-Za-z])1//0[A-Za-z0-9_-]{30,}+"
		"|gAAAAA[A-Za-z0-9_-]{40,}+={0,2}"
		"|(?:figd|ntn|sntrys|sbp|nfp|glc)_[A-Za-z0-9_=+/-]{20,}+"
		"|AKCp[A-Za-z0-9]{20,}+"
		"|[A-Za-z0-9]{14}\\.atlasv1\\.[A-Za-z0-9_-]{40,}+",
		ANCHORS(api_token_anchors), EV_RULE_JOIN_LINES
	},

	/*
	 * Up to the last @ in front of the host.  Passwords may hold @, # and /
	 * raw, so the first @ that is followed by a name with a dot, an address
	 * or a port counts, or else the last one of the authority.  Digits and
	 * then a slash behind the colon are a port and no password.
	 */
	{
		"url-password",
		"(?xi)(?|"
		"[a-z][a-z0-9+.-]{1,20}+://(?!\\[redacted:)"
		"(?! [^\\s:/?\\#\"'<>]{0,255}+ :[0-9]{1,5}(?:[/?\\#]|\\z) )"
		"[^\\s:/?\\#\"'<>]{0,255}+ :"
		"(?! \\[redacted:[a-z0-9_-]{1,40}\\]@ )"
		"( (?: (?! @(?:\\[[0-9a-f:.]{2,60}\\]|localhost"
		"            |(?:[a-z0-9_-]{1,63}\\.){1,8}[a-z0-9-]{1,63}"
		"            |[a-z0-9_-]{1,63}:[0-9]{1,5})"
		"           (?:[:/?\\#,\\s\"'<>)\\]};\\\\]|\\.?\\z|\\.\\s) )"
		"      (?!://)[^\\s\"<>] )*+"
		"  (?=@)"
		"| [^\\s/?\\#\"'<>]{0,255}(?=@)"
		"| [^\\s\"'<>]{0,255}(?=@)"
		")"
		"| [a-z][a-z0-9+.-]{1,20}+://"
		"  (?=[a-z_-]{0,100}[0-9])([^\\s:/?\\#@\"'<>\\[\\]]{20,255}+)(?=@)"
		"| (?<![^\\s\"'=])[^\\s:/@\"'=]{1,64}+ :([^\\s\"']{1,200})"
		"  (?=@(?:tcp|unix)\\()"
		"| :(?:5432|6432|\\*):[^:\\s]{1,64}:[^:\\s]{1,64}:(?!\\[redacted:)([^\\s]++)"
		"| jdbc:oracle:[a-z0-9]{1,10}:[^\\s/:@]{1,64}/([^\\s@]{1,200}+)(?=@) )",
		ANCHORS(url_password_anchors), 0
	},

	/* Short names that hold a secret only inside a query string. */
	{
		"url-parameter",
		"(?xi)"
		"[?&;](?:amp;)?"
		"(?| (?:sig|signature|x-(?:amz|goog|oss|cos|tc)-(?:signature|credential)"
		"     |auth|jwt|sid|session|ticket|hmac|otp|(?:aws|goog|oss)?accesskeyid"
		"     |googleaccessid|samlresponse|assertion)"
		"    = ([^&\\#\\s\"'<>\\\\;]++)"
		"  | (?:code|key|policy) = ([^&\\#\\s\"'<>\\\\;]{16,}+) )",
		ANCHORS(url_parameter_anchors), 0
	},

	{
		"password",
		"(?xi)"
		"(?: passw(?:or)?ds? | pass[-_]word | passwort | pass[-_ ]?phrase | pass[-_]?code"
		"  | pwd(?!(?<![A-Za-z_]pwd)=/[^\\s;]{0,200}(?:[ ];|\\s|\\z))"
		"  | (?<![A-Za-z])pass(?!" QUOTE "?\\s{0,4}[:=]\\s{0,4}[0-9]{1,4}"
		"      (?:[\\s,;.)]|\\z))"
		"  | psw | (?-i:(?<=[a-z])Pass) )"
		NO_META_KEY KEY_REST
		"(?: " SIGN NO_SECRET " | " BLANK_SIGN " )"
		VALUE,
		ANCHORS(password_anchors), 0
	},

	{
		"secret",
		"(?xi)"
		"(?: (?<![0-9]:)secrets? | token | credentials?"
		"  | (?<![A-Za-z])creds"
		"  | key(?<=" KEY_OWNERS("key") "|" KEY_OWNERS("[-_. ]key") ")"
		"  | signature(?<=accesssignature|access[-_ ]signature)"
		"  | sess(?:ion)?_?id(?==[^\\s;,]{12}) )"
		NO_META_KEY KEY_REST
		"(?: " SIGN NO_SECRET
		"    (?!" QUOTE "?[0-9]{1,3}(?![^\\s\"'`\\\\,;&)\\]}<>.]))"
		"  | (?<=token|key)" BLANK_SIGN " | " IS_SIGN " )"
		VALUE,
		ANCHORS(secret_anchors), 0
	},

	/* CREATE ROLE .. PASSWORD 'x' and IDENTIFIED BY "x" have no sign. */
	{
		"sql-password",
		"(?xi)"
		"(?: password | identified[ ]by(?:[ ]password)? ) \\s{1,8}+ e?"
		"(?| '((?:[^'\\\\]++|\\\\(?s:.)?|'')++)'"
		"  | \"((?:[^\"\\\\]++|\\\\(?s:.)?|\"\")++)\""
		"  | \\$[a-z_]{0,20}\\$((?:(?!\\$[a-z_]{0,20}\\$)(?s:.))++) )",
		ANCHORS(sql_password_anchors), 0
	},

	{
		"xml-secret",
		"(?xi)"
		"(?| (?:<[\\w.:-]{0,60}?|<key>[\\w.: -]{0,60}?)(?:password|passwd|pwd|secret|token|(?:api|access"
		"|private|secret|account)[-_]?key)"
		"(?:(?:\\s[^<>]{0,200})?|</key>\\s{0,20}<string)>"
		"(?!\\[redacted:)"
		"(?: <!\\[CDATA\\[ )?([^<]{1,10000}+)(?=<)"
		"| type=[\"']?password[\"']?[^<>]{0,200}?\\svalue=[\"']"
		"  (?!\\[redacted:)([^\"'<>]++) )",
		ANCHORS(xml_secret_anchors), 0
	},

	/* Options of commands that take the secret as the next word. */
	{
		"command-line",
		"(?xi)"
		"(?<![^\\s\"'`(=;|&])"
		"(?| --?(?:[a-z0-9]{1,20}-){0,3}(?:password|passwd|passphrase|pass|pwd"
		"       |token|secret|api-?key|access-?key|secret-?key|private-?key"
		"       |asplaintext)"
		"    [ \\t]{1,4}+ (?!-|\\[redacted:)" VALUE
		"  | convertto-securestring [ \\t]{1,4}+ (?:-string[ \\t]{1,4}+)?"
		"    (?!-|\\$|\\[redacted:)" VALUE
		"  | (?:curl|wget)(?:\\.exe)?[ ][^\\r\\n]{0,400}?"
		"    (?<=[ ])(?:-u|--user|--proxy-user|-U)[ =]?[\"']?"
		"    [^\\s:\"']{1,64}:(?!\\[redacted:)([^\\s\"']++)"
		"  | (?:mysql(?:dump|admin)?|mariadb|sshpass|psexec(?:64)?)(?:\\.exe)?"
		"    [ ][^\\r\\n]{0,200}?(?<=[ ])-p[ ]?(?![- ]|\\[redacted:|assword)"
		"    " VALUE
		"  | (?:sqlplus|sqlldr|expdp|impdp|rman)(?:\\.exe)?[ ]"
		"    [^\\r\\n]{0,80}?[ ]?\"?[^\\s/\"@]{1,64}/(?!/|\\[redacted:)"
		"    ([^\\s@/\"]{1,200}+)(?=@)"
		"  | (?:net|net1)(?:\\.exe)?\"?[ ]{1,4}user[ ]{1,4}"
		"    (?:/[a-z]{1,20}(?::[^\\s]{0,60})?[ ]{1,4}){0,6}+"
		"    (?:\"[^\"]{1,64}\"|[^\\s/\"]{1,64})[ ]{1,4}"
		"    (?![/*]|\\[redacted:)([^\\s]++)(?=\\s|\\z)"
		"  | (?:net|net1)(?:\\.exe)?\"?[ ]{1,4}use[ ]{1,4}[^\\r\\n]{0,120}?"
		"    \\\\\\\\[^\\s]{1,120}[ ]{1,4}(?![/*]|\\[redacted:)([^\\s]++)"
		"  | (?:ldapsearch|ldapmodify|ldapadd|ldapdelete|ldapwhoami)"
		"    [ ][^\\r\\n]{0,200}?(?<=[ ])-w[ ]{1,4}(?!\\[redacted:)" VALUE
		"  | redis-cli[ ][^\\r\\n]{0,200}?(?<=[ ])-a[ ]{1,4}(?!\\[redacted:)" VALUE
		"  | docker[ ]login[ ][^\\r\\n]{0,200}?(?<=[ ])-p[ ]{1,4}"
		"    (?!\\[redacted:)" VALUE
		"  | machine[ ]{1,4}[^\\s]{1,200}\\s{1,8}login\\s{1,8}[^\\s]{1,200}"
		"    \\s{1,8}password\\s{1,8}(?!\\[redacted:)([^\\s]++)"
		"  | schtasks[^\\r\\n]{0,300}?[ ]/rp[ ]{1,4}(?!/)" VALUE
		")",
		ANCHORS(command_line_anchors), 0
	},

	/* Four to eight digits behind a name for such codes. */
	{
		"one-time-code",
		"(?xi)"
		"(?<![A-Za-z]) (?: t?otp | pin | cvv2? | cvc2?"
		"  | (?:otp|mfa|2fa|sms|verification|security|auth|login|pin|backup"
		"      |recovery|one[- ]?time)[-_ ]?code )"
		SIGN "\\\\{0,3}[\"']?([0-9]{3,8}+)(?![0-9A-Za-z])",
		ANCHORS(one_time_code_anchors), 0
	}
};

const int	ev_builtin_rule_count =
(int) (sizeof(ev_builtin_rules) / sizeof(ev_builtin_rules[0]));
