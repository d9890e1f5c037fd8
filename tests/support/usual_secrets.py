"""Secrets in the forms of people and programs, for the tests of stored and shown text."""

MIXED = "a1B2c3D4" * 30  # letters and digits, as many as a key needs
PASSWORD = "hunter2hunter"
PEM = f"-----BEGIN RSA PRIVATE KEY-----\nMIIE{MIXED}\n{MIXED}\n-----END RSA PRIVATE KEY-----"

# A secret, and the forms that people and programs write it in.
SECRETS = {
    "OpenAI": (f"sk-proj-{MIXED[:48]}", "OPENAI_API_KEY={} python x.py"),
    "Anthropic": (f"sk-ant-api03-{MIXED[:90]}", "curl -H 'x-api-key: {}' https://api.example.org"),
    "GitHub": (f"ghp_{MIXED[:36]}", "git clone https://{}@github.com/a/b"),
    "GitHub, fine-grained": (f"github_pat_{MIXED[:82]}", "gh auth login --with-token {}"),
    "GitLab": (f"glpat-{MIXED[:20]}", "curl --header 'PRIVATE-TOKEN: {}' https://gitlab.example.org"),
    "AWS key id": (f"AKIA{MIXED[:16].upper()}", "aws configure set aws_access_key_id {}"),
    "AWS secret": ("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY1234", "export AWS_SECRET_ACCESS_KEY={}"),
    "Google": (f"AIza{MIXED[:35]}", "curl 'https://maps.example.org/json?key={}&q=x'"),
    "Slack": (f"xoxb-{MIXED[:40]}", "slack --token {}"),
    "Slack webhook": (f"T0{MIXED[:8]}/B0{MIXED[:8]}/{MIXED[:24]}", "curl -d x https://hooks.slack.com/services/{}"),
    "Discord webhook": (f"123456789012345678/{MIXED[:60]}", "curl https://discord.com/api/webhooks/{}"),
    "Telegram": (f"1234567890:{MIXED[:35]}", "curl https://api.telegram.org/bot{}/getMe"),
    "Stripe": (f"sk_live_{MIXED[:24]}", "stripe --api-key {} listen"),
    "npm": (f"npm_{MIXED[:36]}", "npm config set //registry.example.org/:_authToken={}"),
    "PyPI": (f"pypi-{MIXED[:160]}", "twine upload -p {} dist/*"),
    "Hugging Face": (f"hf_{MIXED[:34]}", "huggingface-cli login --token {}"),
    "SendGrid": (f"SG.{MIXED[:22]}.{MIXED[:43]}", "echo {} > .env"),
    "Databricks": (f"dapi{'a1b2c3d4' * 4}", "databricks configure --token {}"),
    "DigitalOcean": (f"dop_v1_{'a1b2c3d4' * 8}", "doctl auth init -t {}"),
    "JWT": (f"eyJ{MIXED[:30]}.eyJ{MIXED[:30]}.{MIXED[:40]}", "curl -H 'Authorization: Bearer {}' a.org"),
    "Vault": (f"hvs.{MIXED[:90]}", "VAULT_TOKEN={} vault read x"),
    "PEM": (MIXED, f"cat > key.pem <<EOF\n{PEM}\nEOF"),
    "PEM in one line": (MIXED, "printf '" + PEM.replace("\n", "\\n") + "' > key.pem"),
    "PEM that is cut": (MIXED, PEM[:200]),
    "basic authorization": ("dXNlcjpodW50ZXIy", "curl -H 'Authorization: Basic {}' a.org"),
    "URL": (PASSWORD, "psql postgresql://me:{}@db.example.org/x"),
    "password variable": (PASSWORD, "PGPASSWORD={} psql -h db"),
    "password option": (PASSWORD, "mysql --password={} -u root"),
    "mysql -p": (PASSWORD, "mysql -u root -p{} shop"),
    "mysqldump -p, quoted": (f"{PASSWORD} second2part", "mysqldump -u root -p'{}' shop"),
    "sshpass": (PASSWORD, "sshpass -p {} ssh me@example.org"),
    "sshpass, quoted": (f"{PASSWORD} second2part", "sshpass -p '{}' ssh me@example.org"),
    "docker login, piped": (PASSWORD, "echo {} | docker login -u me --password-stdin"),
    "docker login, piped with printf": (PASSWORD, "printf '%s' '{}' | docker login -u me --password-stdin ghcr.io"),
    "docker login -p": (PASSWORD, "docker login -u me -p {} ghcr.io"),
    "sudo, piped": (PASSWORD, "echo {} | sudo -S apt install x"),
    "gh, piped": (PASSWORD, "echo {} | gh auth login --with-token"),
    "htpasswd": (PASSWORD, "htpasswd -b .htpasswd me {}"),
    "htpasswd to stdout": (PASSWORD, "htpasswd -nbB me {} && make"),
    "redis-cli": (PASSWORD, "redis-cli -h db -a {} ping"),
    "mongosh": (PASSWORD, "mongosh -u me -p {} shop"),
    "unzip": (PASSWORD, "unzip -P {} x.zip"),
    "7z": (PASSWORD, "7z x -p{} x.7z"),
    "openssl": (PASSWORD, "openssl rsa -in key -passin pass:{}"),
    "curl -u": (PASSWORD, "curl -u me:{} a.org"),
    "keytool": (PASSWORD, "keytool -list -storepass {}"),
    "vault login": (PASSWORD, "vault login {}"),
    "vault login, with options": (PASSWORD, "vault login -no-print -address https://v.example.org {} && vault status"),
    "ansible-vault": (PASSWORD, "ansible-vault encrypt_string {}"),
    "ansible-vault, quoted": (
        f"{PASSWORD} second2part",
        "ansible-vault encrypt_string --vault-id dev@a '{}' --name db",
    ),
    "smbclient": (PASSWORD, "smbclient -U u%{} //server/share"),
    "smbclient, joined": (PASSWORD, "smbclient //server/share --user=u%{} -c ls"),
    "rpcclient": (PASSWORD, "rpcclient -Uu%{} server"),
    "snyk": (PASSWORD, "snyk auth {}"),
    "cargo login": (PASSWORD, "cargo login --registry mine {}"),
    "ngrok": (PASSWORD, "ngrok config add-authtoken {}"),
    "rclone": (PASSWORD, "rclone obscure {}"),
    "cookie": (MIXED[:20], "curl -H 'Cookie: session={}; theme=dark' a.org"),
    "two cookies": (MIXED[:20], "curl -H 'Cookie: theme=dark; session={}' a.org"),
    "Azure storage": (MIXED[:60], "AccountName=x;AccountKey={}==;EndpointSuffix=core"),
    "signed URL": (MIXED[:40], "curl 'https://x.blob.example.org/a?sv=1&sig={}'"),
    "JSON": (PASSWORD, '{{"user": "me", "password": "{}"}}'),
    "YAML": (PASSWORD, "user: me\n  password: {}\nhost: db"),
    "dotenv": (PASSWORD, "DB_HOST=db\nDB_PASSWORD={}\nDB_PORT=5432"),
    "hex": ("3f786850e387550fdab836ed7e6dc881de23001b", "the key is {} now"),
}

# Pieces of what a rule looks for. A text of one of them, again and again, makes the rules work most.
HOSTILE = [
    "word ", "a", "=", "a=b&", "'", "echo x | ", "sshpass -p ", "sk-", "://", "-----BEGIN", "-----END", "\n",
    "docker login ", "/eyJ", "htpasswd -b ", "cookie: a=b ", "bearer ", ": ", "= ", "a=", "MII/", "key=", "token=1&",
    "//a@",
    "<a></", "-----BEGIN RSA PRIVATE KEY-----", "//", "echo a|", "3f78" * 10 + " ", "\\\n", "|",
]  # fmt: skip


def written(name):
    """Return the secret, and a text that contains it."""
    secret, way = SECRETS[name]
    return secret, way.replace("{{", "{").replace("}}", "}").replace("{}", secret)


def is_shown(name, text):
    """Return whether the beginning or the end of a word of the secret stands in the text."""
    secret, _ = written(name)
    return any(part in text for word in secret.split() for part in (word[:12], word[-12:]))
