"""Ordinary text in several languages, code, logs and documentation: none of it is a secret, all of it stays."""

import pytest

from memoranda.redaction import redact

PROSE = r"""
We rewrote the password reset flow last week.
The secret: patience and a good notebook.
the secret: patience …
the secret: patience and time
The token: a small coin from Lisbon.
token: a unit of text
A token: the smallest unit a model reads.
Her secret is that she rehearses.
password: required
Password: must be at least 12 characters long.
Password (required): at least 8 characters.
The password is "required" on the first login.
The password is too short.
The password for the demo is written on the whiteboard.
The password for staging is stored in 1Password.
The password policy: 12-character minimum, rotated every 90 days.
Passwords are hashed with argon2id, salted with 16 bytes.
Password - 8 characters or more.
His password is longer than mine.
Forgot password? Click here.
Password: see the vault.
Password: ask Ana before Friday.
Password manager: Bitwarden since 2023.
She keeps a secret diary: green cover, 200 pages.
The open secret: everyone knows about the merger.
The trade secret: never let the dough rise twice.
Secret santa: Bob draws Ana on 2026-12-06.
The secret to good tea: 80-degree water for 3 minutes.
The secret: 10,000 hours.
The secret: 20-minute walks after lunch.
The secret: GitHub Actions and a lot of caching.
The secret ingredient is cardamom.
The token: GPT-4o counts them differently.
token: JavaScript has no integers.
A token: see RFC2119 for the wording.
Token: Python3.11 names them in `token.py`.
Max tokens: 4096, temperature 0.2.
max_tokens=2048 and token_count=20480000
prompt_tokens: 123456, completion_tokens: 2345678
"total_tokens": 1234567, "cached_tokens": 120000
tokens=131072 is the context of that model.
token_type: bearer
"token_type": "bearer", "expires_in": 3600
token_limit=1000000
password_policy: strict-and-long
secret_name: billing-production
secret_arn: arn:aws:secretsmanager:eu-west-1:123456789012:secret:billing
api_key_id: 17
password_min_length: 12
password_file=/run/secrets/db_password
DB_PASSWORD_FILE=/run/secrets/db_password
TOKEN=/var/run/secrets/kubernetes.io/serviceaccount/token
password = getpass()
password = getpass.getpass("Password: ")
password = input("Your password? ")
api_key = os.environ['KEY']
api_key = os.getenv("OPENAI_API_KEY")
api_key=os.environ["OPENAI_API_KEY"],
SECRET_KEY = config("SECRET_KEY")
password=$DB_PASSWORD or ${DB_PASSWORD}
export TOKEN=$(vault read -field=token secret/app)
password: <your password>
password: {{ vault.db_password }}
PASSWORD=%DB_PASSWORD%
"Authorization": f"Bearer {token}"
headers = {"Authorization": "Bearer " + token}
curl -H "Authorization: Bearer $TOKEN" https://api.example.com/v1/models
curl -u "$USER:$PASS" https://example.com
curl -u ana https://example.com asks for the rest
login(user=user, password=password)
client = Client(api_key=api_key, token=self.token)
self.password = password
def login(user: str, password: str) -> Token:
def check(token: str | None = None, *, secret: bytes) -> bool: ...
password: SecretStr
access_token: string;
auth_token: Optional[str] = None
interface Login { user: string; password: string; token?: string }
if token == "EOF":
if token.type == "NUMBER": return float(token.value)
Token("NUMBER", r"\d+")
for token in tokens: print(token)
tokens = text.split()
assert token != 'END'
password.length > 8 && password !== confirmation
const { password, ...rest } = user;
SELECT id, password_hash FROM users WHERE token IS NULL;
CREATE TABLE users (id int, password varchar(255) NOT NULL);
<input type="password" name="password" placeholder="Your password">
<label for="password">Password</label>
`password`: must be a string
`api_key`: the key to use
- client_secret: identifies the application to the server
- auth-token: describes who is asking
--- PASS: TestLogin2 (0.00s)
PASS: 12 FAIL: 0
pass: true, bypass: none, compass: north
first pass: optimise the loops
the keyword: something1
Key: value
primary_key=customer_number foreign_key=orders_2024
cache_key: user-profile-2024
partition key: customer_id
key bindings: Ctrl+Shift+P opens the palette
access key: Alt+Shift+S saves the draft
hotkey: Cmd+K
the monkey: banana4you
The key: C-sharp minor, 4/4
authorization: bearer tokens are used here
Authorization: required for every route.
Authorization: ask the facilities team
the bearer of this letter
Bearer of good news: the release is out.
The bearer: Ana Silva, passport to follow.
the ring-bearer walks to the mountain
Use a bearer token in the Authorization header.
The cookie: a small biscuit with tea.
Cookie: accepted
Cookie banner: shown once, dismissed for 30 days
credentials: ask the platform team
The credential helper is osxkeychain.
sk-learn and gh_pages are names
task-oriented-dialogue-systems-with-memory
a risk-based, task-oriented plan for Asia
ASIA and AKIA are prefixes of AWS key ids.
A GitHub token begins with ghp_ and has 40 characters.
glpat- is the prefix of GitLab's tokens.
xox is noughts and crosses without the noughts
the JWT begins with eyJ and has three parts
hf_hub_download is a function, npm_config_registry a variable
shp files and the lin_alg module
-----BEGIN RSA PRIVATE KEY----- is the first line of a PEM file, and prose may follow.
-----BEGIN CERTIFICATE-----
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJx0x1x2x3x4x5x6x7x8x9x0y1y2y3y4y5y6y7y8 ana@laptop
http://localhost:8080/path?mail=a@b.example
http://[::1]:8080/a@b
see https://example.com/a:b and mail ana@example.com
https://medium.com/@ana/why-tea-12345
https://packages.example.org/@types/node/-/node-20.1.0.tgz
git@github.com:ana/memoranda.git
ssh://git@github.com/ana/memoranda.git
pip install git+https://github.com/ana/tea.git@v1.2.3
mailto:ana@example.com?subject=token
redis://cache:6379/0
postgresql:///app?host=/var/run/postgresql
sqlite:///memoranda.db
docker run -p 8080:80 -u 1000:1000 nginx
ssh -p 2222 ana@example.com
mkdir -p /tmp/password/reset
mysql -u root -p shop
mongodump -p
cp -a src dst
redis-cli -h cache -n 2 ping
the --password flag is deprecated
use --token to authenticate
--password-stdin reads it from standard input
--api-key is read from the environment
commit 821a1545b0c9f3d2e7a6f4b8c1d0e9f8a7b6c5d4 fixed the token parser
Merge pull request 412 from ana/secret-santa
sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
md5 of the archive: d41d8cd98f00b204e9800998ecf8427e
id 550e8400-e29b-41d4-a716-446655440000 was deleted
session 01JDXM3K8Q2V5Z9T7R4W6Y0ABC started
session_id=550e8400-e29b-41d4-a716-446655440000
trace=4bf92f3577b34da6a3ce929d0e0e4736 span=00f067aa0ba902b7
2026-11-30T00:29:34Z INFO auth: token refreshed for user 1234567 in 250ms
2026-11-30 00:29:34,123 WARN password expired, user=ana attempts=3
[error] 1234#0: *5678 connect() failed (111: Connection refused), upstream: "http://127.0.0.1:8080/"
127.0.0.1 - - [30/Nov/2026:00:29:34 +0000] "GET /token?page=2 HTTP/1.1" 200 1234
kernel: [12345678:abcdef] usb 1-1: new device
data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==
ISBN 978-3-16-148410-0
Call +49 30 901820 or (555) 010-9999.
IBAN DE02 1203 0000 0000 2020 51
Order 4711-0815 was shipped on 2026-11-30.
The flight is LH2026 at 07:35, seat 12A.
Version 1.2.3-rc.4 of the tokenizer is out.
tokenizer: bert-base-uncased
keyboard layout: us-intl
secretary: Anna Schmidt
the secretariat: room 204b
Passenger: Ana Silva, seat 14C, passport shown.
passport: expires 2031
The password reset e-mail goes to ana@example.com.
Das Passwort wurde gestern geändert.
Das Passwort ist abgelaufen.
Passwort: siehe Tresor
Das Geheimnis: Geduld und ein gutes Notizbuch.
Der Schlüssel liegt unter der Matte.
Das Token: eine kleine Münze.
Le mot de passe est oublié.
La contraseña es demasiado corta.
Il secret de la sauce: du temps.
周末的密码是什么？
密码：必填
密码重置流程上周重写了。
秘密：耐心和时间。
她的密码本是绿色的。
令牌是文本的最小单位。
パスワードは必須です。
パスワード：8文字以上
秘密は忍耐です。
トークン：文章の最小単位
비밀번호는 8자 이상이어야 합니다.
Пароль: обязательное поле
Пароль был изменён вчера.
Секрет: терпение и время.
Токен — это единица текста.
كلمة السر هي الصبر
😀 the secret: 😀😀😀😀😀😀
Ana said “the password: reset it” and left.
the sign reads “secret: keep out”
Dear Sir: the token of my appreciation is enclosed.
i18n: "password": "Passwort", "forgot": "Forgot password?"
"password": "Enter your password"
{"type": "password", "required": true}
{"secret": null, "token": false, "password": ""}
passwordless: true
password_reset: enabled
PASSWORD_RESET_URL=https://example.com/reset
token_endpoint: https://auth.example.com/oauth/token
The token bucket: 100 per second, burst 250.
Secret: https://example.com/blog/secret
password: ********
password: xxxxxxxx
token: [token]
[REDACTED:credential]
token: [REDACTED:github-token]
a=b; c=d; path=/; key=value
x = {"key": "abcdef123456", "value": "abcdef123456"}
the pwd command prints /home/ana
PWD=/home/ana OLDPWD=/
PW: see above
git log --oneline | grep password
grep -rn "password" src
"secret" | "token" | "password"
"""


@pytest.mark.behaviour("W29")
@pytest.mark.parametrize("text", ["", PROSE, *PROSE.strip().splitlines()])
def test_prose_and_code_without_a_secret_are_untouched(text: str) -> None:
    assert redact(text) == text


def test_a_random_kind_of_picture_is_no_secret() -> None:
    picture = "data:image/png;base64," + "iVBORw0KGgoAAAANSUhEUgAA/+9" * 40
    assert redact(picture) == picture
